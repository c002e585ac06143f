# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Makes the RPM packages of BUILD in ROOT, installs them into a root of their own with a data base of
# its own, and demands that each of FILES and DEV_FILES and the module of each of MODULES is there
# (OTHERS have packages, too), that the packages say what they need, and that libfabric finds the provider.
find_program(rpmbuild rpmbuild)
find_program(rpm rpm)
if(NOT rpmbuild OR NOT rpm)
  message("SKIPPED: rpmbuild is not there (Debian: apt-get install rpm)")
  return()
endif()
if(SANITIZE)
  message("SKIPPED: packages are made of builds without sanitizers")
  return()
endif()
file(REMOVE_RECURSE ${ROOT})
execute_process(COMMAND ${CPACK} -G RPM --config ${BUILD}/CPackConfig.cmake -B ${ROOT}/made
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB packages ${ROOT}/made/*.rpm)
list(LENGTH packages count)
list(LENGTH MODULES modules)
list(LENGTH OTHERS others)
math(EXPR wanted "2 + ${modules} + ${others}")
if(NOT count EQUAL wanted)
  message(FATAL_ERROR "not ${wanted} packages but: ${packages}")
endif()

# demand_needs(NAME NEEDED...): the package of that name requires each of NEEDED.
function(demand_needs name)
  file(GLOB package ${ROOT}/made/${name}-[0-9]*.rpm)
  execute_process(COMMAND ${rpm} --query --requires --package ${package} OUTPUT_VARIABLE requires
    COMMAND_ERROR_IS_FATAL ANY)
  foreach(needed IN LISTS ARGN)
    if(NOT requires MATCHES "${needed}")
      message(FATAL_ERROR "${name} does not require ${needed} but:\n${requires}")
    endif()
  endforeach()
endfunction()
demand_needs(libfabric-uet "libfabric >= 1\\.17" "libfabric\\.so" "libcrypto\\.so" "libnl-3\\.so")
demand_needs(libfabric-uet-devel "libfabric-uet = " "libfabric-devel >= 1\\.17")
foreach(module IN LISTS MODULES)
  demand_needs(libfabric-uet-nic-${module} "libfabric-uet = ")
endforeach()

# Their dependencies are packages of another distribution than this one, hence --nodeps.
execute_process(COMMAND ${rpm} --root ${ROOT}/installed --dbpath /rpm-data --nodeps --noscripts
  --install ${packages} COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(plug_ins ${PLUGIN} DIRECTORY)
foreach(module IN LISTS MODULES)
  list(APPEND FILES ${plug_ins}/libuet-nic-${module}.so)
endforeach()
foreach(file IN LISTS PLUGIN FILES)
  # Newer versions of rpm compress man pages.
  if(NOT EXISTS ${ROOT}/installed${file} AND NOT EXISTS ${ROOT}/installed${file}.gz)
    message(FATAL_ERROR "${file} is not in the packages")
  endif()
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/build_with_pkg_config.cmake)
build_with_pkg_config(${ROOT}/installed "${DEV_FILES}")
include(${CMAKE_CURRENT_LIST_DIR}/ask_fi_info.cmake)
ask_fi_info(${ROOT}/installed${PLUGIN})
