# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What is installed beside the provider, the Debian and RPM packages, and the target that takes it all
# away.

install(FILES examples/active_messages.cc examples/four_ranks.cc examples/mpi_ring.c examples/object_push.cc examples/rma_example.cc examples/uet_bench.cc
  examples/common.h examples/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libfabric-uet/examples)
install(FILES scripts/wireshark/uet.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/uet/wireshark)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libfabric-uet RENAME copyright)
if(TARGET uet_dissect)
  install(TARGETS uet_dissect RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Relative to the .pc file: a package has another prefix than this build.
file(RELATIVE_PATH includedir_of_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /${CMAKE_INSTALL_INCLUDEDIR})
foreach(name IN ITEMS uet uet-job)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()

# Removes what the last `cmake --install` of this directory wrote; honours DESTDIR like it.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
    -P ${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake
  VERBATIM)

# cpack -G DEB, or the target `package`; cpack -G RPM where rpmbuild is. The plug-in's directory is libfabric's, hence absolute.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libfabric-uet)
set(CPACK_PACKAGE_VENDOR "the uet provider authors")
set(CPACK_PACKAGE_CONTACT "the uet provider authors <uet@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Ultra Ethernet Transport for libfabric")
set(CPACK_PACKAGE_DESCRIPTION "A libfabric provider that carries messages, tagged messages, RMA and
atomics as Ultra Ethernet Transport packets over the kernel's UDP sockets. No special hardware and
no privilege is needed; programs that use libfabric run over it unchanged.")
set(CPACK_UET_SOURCE_DIR ${PROJECT_SOURCE_DIR})
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageTime.cmake)
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libfabric1 (>= 1.17)")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfabric-bin, openmpi-bin, wireshark | tshark")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "BSD-2-Clause OR GPL-2.0-only")
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
set(CPACK_RPM_PACKAGE_REQUIRES "libfabric >= 1.17")
# The provider is in what belongs to no component; headers are one, NIC back ends with libraries one
# each.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL Unspecified dev)
set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME ${CPACK_PACKAGE_NAME})
set(CPACK_RPM_UNSPECIFIED_PACKAGE_NAME ${CPACK_PACKAGE_NAME})
set(CPACK_COMPONENT_UNSPECIFIED_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")

# uet_package_part(COMPONENT DEB_NAME RPM_NAME DESCRIPTION): a package beside the provider's.
macro(uet_package_part name deb_name rpm_name description)
  string(TOUPPER ${name} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${deb_name})
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${CPACK_PACKAGE_NAME} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_${component}_PACKAGE_SUGGESTS "")
  set(CPACK_RPM_${component}_PACKAGE_NAME ${rpm_name})
  set(CPACK_RPM_${component}_PACKAGE_REQUIRES "${CPACK_PACKAGE_NAME} = ${PROJECT_VERSION}")
  set(CPACK_COMPONENT_${component}_DESCRIPTION "${description}")
endmacro()
uet_package_part(dev ${CPACK_PACKAGE_NAME}-dev ${CPACK_PACKAGE_NAME}-devel
  "Headers, link library and pkg-config files for programs that use what the libfabric provider uet
offers beyond libfabric (rdma/fi_ext_uet.h) or that uet_run starts (uet/uet_job.h).")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libfabric-dev (>= 1.17)")
string(APPEND CPACK_RPM_DEV_PACKAGE_REQUIRES ", libfabric-devel >= 1.17")
get_property(modules GLOBAL PROPERTY UET_NIC_PACKAGES)
foreach(module IN LISTS modules)
  list(APPEND CPACK_COMPONENTS_ALL nic_${module})
  set(package ${CPACK_PACKAGE_NAME}-nic-${module})
  uet_package_part(nic_${module} ${package} ${package} "The NIC back end ${module} of the libfabric
provider uet, which FI_UET_NIC=${module} asks for.")
endforeach()
if(TARGET uet-sim-mpi)
  list(APPEND CPACK_COMPONENTS_ALL sim_mpi)
  set(package ${CPACK_PACKAGE_NAME}-sim-mpi)
  uet_package_part(sim_mpi ${package} ${package} "A module of the network simulator uet-sim, with which
mpirun divides one simulated network over several processes and hosts.")
endif()
if(TARGET uet_exporter)
  list(APPEND CPACK_COMPONENTS_ALL exporter)
  set(CPACK_DEBIAN_EXPORTER_PACKAGE_NAME ${CPACK_PACKAGE_NAME}-exporter)
  set(CPACK_DEBIAN_EXPORTER_PACKAGE_DEPENDS "")
  set(CPACK_DEBIAN_EXPORTER_PACKAGE_SUGGESTS "prometheus")
  set(CPACK_RPM_EXPORTER_PACKAGE_NAME ${CPACK_PACKAGE_NAME}-exporter)
  set(CPACK_RPM_EXPORTER_PACKAGE_REQUIRES "")
  set(CPACK_COMPONENT_EXPORTER_DESCRIPTION "The program uet_exporter, which gives counters and peers of
running domains of the libfabric provider uet to Prometheus, and a dashboard for Grafana.")
endif()
include(CPack)
