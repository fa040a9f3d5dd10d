# speedscope, a viewer of profiles, is an optional part of the web page, included as its authors
# publish it (MIT license). rt_speedscope(OUT) sets OUT to its files, or to an empty list if it is
# not available.
#
# npm downloads it once, from the registry in npm's configuration, and the archive must have the
# hash below. Without npm or a network the build goes on, and the page says that speedscope is
# missing. Nothing is downloaded with -DRT_SPEEDSCOPE=OFF, or if speedscope-VERSION.tgz has been put
# into build/speedscope/ by hand.
option(RT_SPEEDSCOPE "make speedscope part of the web page" ON)
set(RT_SPEEDSCOPE_VERSION 1.25.0)
set(RT_SPEEDSCOPE_SHA256 2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03)
set(RT_SPEEDSCOPE_TIMEOUT_S 30)

function(rt_speedscope out)
  set(${out} "" PARENT_SCOPE)
  if(NOT RT_SPEEDSCOPE)
    return()
  endif()
  set(directory ${CMAKE_BINARY_DIR}/speedscope)
  set(archive ${directory}/speedscope-${RT_SPEEDSCOPE_VERSION}.tgz)
  file(MAKE_DIRECTORY ${directory})
  find_program(RT_NPM npm)
  if(NOT EXISTS ${archive} AND RT_NPM)
    execute_process(COMMAND ${RT_NPM} pack speedscope@${RT_SPEEDSCOPE_VERSION} --ignore-scripts
      --fetch-retries=0 --loglevel=error
      WORKING_DIRECTORY ${directory} TIMEOUT ${RT_SPEEDSCOPE_TIMEOUT_S} OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT EXISTS ${archive})
    message(STATUS "speedscope is not included in the web page: npm or the network is not available")
    return()
  endif()
  file(SHA256 ${archive} hash)
  if(NOT hash STREQUAL RT_SPEEDSCOPE_SHA256)
    file(REMOVE ${archive})
    message(WARNING "speedscope is not included in the web page: ${archive} had the hash ${hash}, not ${RT_SPEEDSCOPE_SHA256}")
    return()
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${directory})
  file(GLOB files ${directory}/package/dist/release/* ${directory}/package/LICENSE)
  set(${out} ${files} PARENT_SCOPE)
endfunction()
