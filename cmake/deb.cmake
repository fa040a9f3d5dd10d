# Describes two Debian packages to CPack (make deb): ray-runtime has the components Unspecified, cpp
# and deb of the install rules, ray-runtime-dev has cpp_dev and deb_dev.
set(RT_MAINTAINER "ray-runtime <root@localhost>" CACHE STRING "who answers for the Debian packages")
set(deb_dir ${CMAKE_SOURCE_DIR}/packaging/debian)
set(deb_doc ${CMAKE_BINARY_DIR}/deb-doc)

# The license, and those of others whose code or files are part of the programs, go with everything
# that is installed; the package of the headers has copies of its own.
set(rt_licenses ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE ${deb_dir}/copyright)
install(FILES ${rt_licenses} DESTINATION share/doc/ray-runtime)
install(FILES ${rt_licenses} DESTINATION share/doc/ray-runtime-dev
  COMPONENT deb_dev EXCLUDE_FROM_ALL)

# Files that only the packages have: the environment file for administrators, and the documents
# that Debian requires in every package.
install(FILES ${CMAKE_SOURCE_DIR}/config/ray.env DESTINATION /etc/ray COMPONENT deb
  EXCLUDE_FROM_ALL PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
file(GLOB deb_documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
list(FILTER deb_documents EXCLUDE REGEX "\\.intro\\.md$")
install(FILES ${deb_documents} DESTINATION share/doc/ray-runtime COMPONENT deb EXCLUDE_FROM_ALL)
# The documents show and name these.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/images ${CMAKE_SOURCE_DIR}/docs/examples
  DESTINATION share/doc/ray-runtime COMPONENT deb EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
file(WRITE ${deb_doc}/changelog.Debian "ray-runtime (${PROJECT_VERSION}-1) bookworm; urgency=medium\n\n  * Built from the project's tree.\n\n -- ${RT_MAINTAINER}  Sun, 22 Nov 2026 00:00:00 +0000\n")
execute_process(COMMAND gzip -9nkf ${deb_doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
foreach(component deb deb_dev)
  set(package ray-runtime)
  if(component STREQUAL deb_dev)
    set(package ray-runtime-dev)
  endif()
  install(FILES ${deb_doc}/changelog.Debian.gz DESTINATION share/doc/${package}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(FILES ${deb_dir}/lintian-overrides DESTINATION share/lintian/overrides RENAME ray-runtime
  COMPONENT deb EXCLUDE_FROM_ALL)
install(FILES ${deb_dir}/lintian-overrides-dev DESTINATION share/lintian/overrides
  RENAME ray-runtime-dev COMPONENT deb_dev EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)          # because install rules write the prefix into files
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${RT_MAINTAINER}")
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/dist)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/deb)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL Unspecified cpp deb cpp_dev deb_dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)

math(EXPR deb_next_minor "${rt_python_minor} + 1")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ray-runtime)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION net)
# The binding works with one version of the interpreter only. postinst needs adduser on machines
# without systemd.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "adduser, python3 (>= 3.${rt_python_minor}), python3 (<< 3.${deb_next_minor}), python3-cloudpickle")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "ray-runtime-dev, python3-yaml")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "cluster runtime for Python and C++ programs written for Ray
Tasks, actors, objects and jobs on one machine or many, behind the public
interface of Ray: the daemons, the command rayctl (also: ray), the Python
package ray for Debian's Python, and systemd units for head and nodes.
Nothing is started by installing it.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${deb_dir}/postinst ${deb_dir}/prerm
  ${deb_dir}/postrm ${deb_dir}/conffiles ${deb_dir}/triggers)
# The package ray-runtime-dbgsym has function names for profiles of the daemons and for core dumps.
set(CPACK_DEBIAN_RUNTIME_DEBUGINFO_PACKAGE ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ray-runtime-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "ray-runtime (= ${PROJECT_VERSION}-1), libboost1.81-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "cluster runtime for programs written for Ray - C++ headers
Headers of the C++ interface (ray/api.h) and the CMake package named ray for
programs that use tasks, actors and objects of a cluster.")

include(CPack)
cpack_add_component_group(runtime)
cpack_add_component_group(development)
foreach(component Unspecified cpp deb)
  cpack_add_component(${component} GROUP runtime)
endforeach()
foreach(component cpp_dev deb_dev)
  cpack_add_component(${component} GROUP development)
endforeach()
