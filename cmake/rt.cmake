# Tools, third-party packages, and the functions that declare targets: rt_library, rt_program,
# rt_test.
# The precompiled headers have 200 MB. Without its cache of hashes by inode, ccache would hash them
# again for each source. With the compiler's own list of what a source includes it need not
# preprocess a source that it does not know. The times of headers must count: ccache hashes them
# after the compiler has run, and only the times tell that somebody has changed one meanwhile.
find_program(RT_CCACHE ccache)
if(RT_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_INODECACHE=1 CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${RT_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
find_program(RT_MOLD mold)
if(RT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_compile_options(-Wall -Wextra -Werror=return-type -Werror=unused-result
  -Wno-missing-field-initializers)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
# scripts/sanitize builds with these in directories of their own. The first finding ends a process,
# so that no test can pass with one. vptr is left out, because it needs the type information of
# classes that shared libraries hide; null and the others beside it, because they check each access
# once more, which takes a quarter of the time to compile, and the address sanitizer finds most of
# what they would.
set(RT_SANITIZE "" CACHE STRING "address (and undefined behaviour) or thread; empty: neither")
if(RT_SANITIZE STREQUAL "address")
  set(rt_sanitizers -fsanitize=address,undefined -fno-sanitize=vptr
    -fno-sanitize=null,alignment,object-size,nonnull-attribute,returns-nonnull-attribute
    -fno-sanitize-recover=all)
elseif(RT_SANITIZE STREQUAL "thread")
  # The headers of protobuf lay out a map in another way if GCC's own macro is defined, but not its
  # library. The headers of libstdc++ derive the other macro from it.
  set(rt_sanitizers -fsanitize=thread -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
elseif(RT_SANITIZE)
  message(FATAL_ERROR "RT_SANITIZE is ${RT_SANITIZE}: it must be address, thread or empty")
endif()
if(RT_SANITIZE)
  # GCC's warnings about values that may be uninitialised are wrong in instrumented code.
  add_compile_options(${rt_sanitizers} -Wno-maybe-uninitialized)
  add_link_options(${rt_sanitizers})
  # Such a build is made in order to run the tests once, and instrumented code takes several times
  # as long to optimise.
  string(REPLACE "-O2" "-O0" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endif()
# GCC collects its garbage when its heap has grown beyond a threshold, which the precompiled headers
# exceed from the start. Without collections a translation unit needs a tenth less time and 15 %
# more memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=2000000")
endif()
add_link_options(-Wl,--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS program_options)
find_package(Protobuf REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
include(lighter_headers)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(dw REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl)
# JSON values are made of texts, not of paths, and <filesystem> is expensive (cmake/pch/common.h).
add_compile_definitions(BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_HAS_STD_INVOKE_RESULT SPDLOG_FMT_EXTERNAL JSON_HAS_FILESYSTEM=0)

# Precompiled headers (cmake/pch) contain third-party headers and generated messages, but no headers
# of the project. A build with RT_PCH=OFF finds missing #include directives. All targets are
# compiled with -fPIC, because only then can they share precompiled headers.
option(RT_PCH "use precompiled headers" ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)

function(rt_precompiled name)
  cmake_parse_arguments(A "" "" "HEADERS;DEPS;OPTIONS" ${ARGN})
  if(RT_PCH)
    file(WRITE ${CMAKE_BINARY_DIR}/pch/${name}.cc.new "// Only precompiles headers.\n")
    file(COPY_FILE ${CMAKE_BINARY_DIR}/pch/${name}.cc.new ${CMAKE_BINARY_DIR}/pch/${name}.cc
      ONLY_IF_DIFFERENT)
    add_library(rt_pch_${name} OBJECT ${CMAKE_BINARY_DIR}/pch/${name}.cc)
    target_include_directories(rt_pch_${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    target_link_libraries(rt_pch_${name} PRIVATE ${A_DEPS})
    target_compile_options(rt_pch_${name} PRIVATE ${A_OPTIONS})
    target_precompile_headers(rt_pch_${name} PRIVATE ${A_HEADERS})
    if(RT_CCACHE)
      set_target_properties(rt_pch_${name} PROPERTIES CXX_COMPILER_LAUNCHER
        "${CMAKE_SOURCE_DIR}/cmake/pch/compile_anew;${CMAKE_CXX_COMPILER_LAUNCHER}")
    endif()
  endif()
endfunction()

function(rt_use_precompiled target name)
  if(RT_PCH)
    target_precompile_headers(${target} REUSE_FROM rt_pch_${name})
    target_compile_options(${target} PRIVATE -Winvalid-pch)
    target_compile_definitions(${target}
      PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
endfunction()

# Unity builds: the sources of a target are compiled in groups, several files in one translation
# unit, so that the headers are parsed once for all of them, and a template is instantiated once. A
# clean build then takes a third of the CPU time. A group is small enough to be compiled again
# within a few seconds after an edit. -DRT_UNITY=OFF compiles file by file, for clang-tidy and
# clangd, and to find a missing #include. A name in an anonymous namespace must be unique within its
# target.
option(RT_UNITY "compile several files of a target in one translation unit" ON)
set(RT_UNITY_BYTES 34000 CACHE STRING "the sources of a unity group have at most this many bytes together")
# Most of what a test costs is its headers, and its own code is not optimised.
set(RT_UNITY_TEST_BYTES 45000 CACHE STRING "the same for the sources of tests")
set(RT_SANITIZE_UNITY_BYTES 120000 CACHE STRING "the same for a build with RT_SANITIZE")
function(rt_unity target)
  if(NOT RT_UNITY)
    return()
  endif()
  # The warning takes a source that another one includes for a header.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  if(RT_SANITIZE)
    # Nobody edits sources there, nor measures calls.
    set(RT_UNITY_BYTES ${RT_SANITIZE_UNITY_BYTES})
  endif()
  # Each source joins the first group of its kind that has room for it.
  set(groups_of_calls 0)
  set(groups_of_others 0)
  foreach(source ${ARGN})
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(NOT source MATCHES "\\.cc$" OR IS_ABSOLUTE ${source} OR alone)
      continue()
    endif()
    get_source_file_property(kind ${source} RT_UNITY_KIND)
    if(NOT kind)
      set(kind others)
    endif()
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} size)
    set(group 0)
    while(group LESS groups_of_${kind})
      math(EXPR together "${bytes_of_${kind}_${group}} + ${size}")
      if(together LESS_EQUAL RT_UNITY_BYTES)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    if(group EQUAL groups_of_${kind})
      set(together ${size})
      math(EXPR groups_of_${kind} "${group} + 1")
    endif()
    set(bytes_of_${kind}_${group} ${together})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${kind}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# rt_calls(source...), before the target is declared: sources with the code of each call, which have
# groups of their own. In a translation unit with many callers GCC inlines fewer templates and
# functions of headers.
function(rt_calls)
  set_source_files_properties(${ARGN} PROPERTIES RT_UNITY_KIND calls)
endfunction()

# rt_alone(source...), before the target is declared: sources that are compiled by themselves. With
# all sources of rt_calls() in groups, ray.get() of a small value took a sixth longer.
function(rt_alone)
  if(NOT RT_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# rt_cold(target...): targets that wait for users, other processes or the disk, and gain nothing
# from -O2. -O1 takes a quarter less time to compile.
function(rt_cold)
  if(NOT RT_SANITIZE)
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE -O1)
    endforeach()
  endif()
endfunction()

# rt_library(name SOURCES ... DEPS ... PRIVATE_DEPS ...): declares a static library.
function(rt_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${A_DEPS} PRIVATE ${A_PRIVATE_DEPS})
  rt_use_precompiled(${name} common)
  rt_unity(${name} ${A_SOURCES})
endfunction()

# rt_program(name SOURCES ... DEPS ...): declares an executable in build/bin.
function(rt_program name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${A_DEPS})
  rt_use_precompiled(${name} common)
  rt_unity(${name} ${A_SOURCES})
endfunction()

# rt_test(name [OPTIMISED] [SIMULATION] SOURCES ... DEPS ...): declares a GoogleTest program that
# ctest runs, with the label unit. Without OPTIMISED it is compiled with -O0, which takes a third of
# the time. With SIMULATION it is none of the target `units`.
function(rt_test name)
  cmake_parse_arguments(A "OPTIMISED;SIMULATION" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${A_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(A_OPTIMISED)
    rt_use_precompiled(${name} common)
  else()
    target_compile_options(${name} PRIVATE -O0)
    rt_use_precompiled(${name} test)
  endif()
  set(RT_UNITY_BYTES ${RT_UNITY_TEST_BYTES})
  rt_unity(${name} ${A_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT A_SIMULATION)
    add_dependencies(units ${name})
  endif()
  set(timeout 600)
  if(RT_SANITIZE)
    set(timeout 1200)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${timeout})
endfunction()
