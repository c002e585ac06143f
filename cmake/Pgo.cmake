# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Profile-guided optimisation (UET_PGO): the tree is built a second time, in the directory `training`
# and with counters, scripts/train runs the benchmark there, and g++ compiles by what was counted.
# Sets uet_pgo, options for compiling and linking what the plug-in is made of, and has
# uet_compile_by_profile(TARGET), which gives them to it. No two training runs count the same, so
# that packages which shall be equal are built by one profile (UET_PROFILE).
set(uet_pgo)
set(UET_PROFILE "" CACHE PATH "With UET_PGO: the profile of another build (its training/profile) instead of a training run")
set(UET_TRAINING OFF CACHE INTERNAL "This is the build with counters")
if(UET_TRAINING)
  set(uet_pgo -fprofile-generate=${PROJECT_BINARY_DIR}/profile -fprofile-update=prefer-atomic
    -fprofile-prefix-path=${PROJECT_BINARY_DIR})
elseif(UET_PGO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if((CMAKE_CROSSCOMPILING AND NOT UET_PROFILE) OR UET_SANITIZE)
    message(FATAL_ERROR "UET_PGO runs what it builds, without sanitizers: configure with -DUET_PGO=OFF")
  endif()
  set(training ${PROJECT_BINARY_DIR}/training)
  set(profile ${training}/profile)
  if(UET_PROFILE)
    set(profile ${UET_PROFILE})
    file(GLOB_RECURSE counts ${profile}/*.gcda)
    if(NOT counts)
      message(FATAL_ERROR "UET_PROFILE: there is no profile in ${profile}")
    endif()
  endif()
  # Code that the training does not run is compiled as ever; files of other programs have no profile.
  set(uet_pgo -fprofile-use=${profile} -fprofile-prefix-path=${PROJECT_BINARY_DIR}
    -fprofile-partial-training -Wno-missing-profile)
endif()
if(uet_pgo AND NOT UET_TRAINING AND NOT UET_PROFILE)
  set(settings)
  foreach(name IN ITEMS CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CXX_FLAGS
      CMAKE_CXX_FLAGS_RELEASE CMAKE_PREFIX_PATH UET_UNITY)
    string(REPLACE ";" "\\;" value "${${name}}")
    list(APPEND settings "-D${name}=${value}")
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cc src/*.h include/*.h prov/uet/*.cc prov/uet/*.h)
  include(ProcessorCount)
  ProcessorCount(processors)
  add_custom_command(OUTPUT ${training}/trained
    COMMAND ${CMAKE_COMMAND} -G ${CMAKE_GENERATOR} -S ${PROJECT_SOURCE_DIR} -B ${training} ${settings}
      -DUET_TRAINING=ON -DUET_BUILD_TESTS=OFF -DUET_BUILD_BENCH=OFF
    COMMAND ${CMAKE_COMMAND} --build ${training} --parallel ${processors} --target uet-fi uet_bench
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/train ${training}
    COMMAND ${CMAKE_COMMAND} -E touch ${training}/trained
    DEPENDS ${sources} scripts/train scripts/common.sh examples/uet_bench.cc examples/common.h
    COMMENT "Building and running the plug-in with counters, for profile-guided optimisation (UET_PGO)"
    USES_TERMINAL VERBATIM)
  add_custom_target(uet-training DEPENDS ${training}/trained)
endif()

function(uet_compile_by_profile target)
  target_compile_options(${target} PRIVATE ${uet_pgo})
  if(UET_TRAINING)
    target_link_options(${target} PUBLIC ${uet_pgo})
  elseif(TARGET uet-training)
    add_dependencies(${target} uet-training)
  endif()
endfunction()
