# Copies of third-party headers that are cheaper to compile: without parts that every file with the
# header would pay for and that the project does not use, or with one more function in place of many
# instances of a template. They are in build/headers, before the original ones. A header that is not
# written as expected, because the library is another version, is used as it is.
set(RT_LIGHTER_HEADERS ${CMAKE_BINARY_DIR}/headers)
include_directories(BEFORE ${RT_LIGHTER_HEADERS})

# rt_replace(FROM TO): replaces FROM in rt_text, which must have it.
macro(rt_replace from to)
  string(FIND "${rt_text}" "${from}" rt_at)
  if(rt_at EQUAL -1)
    set(rt_expected FALSE)
  endif()
  string(REPLACE "${from}" "${to}" rt_text "${rt_text}")
endmacro()

# rt_lighter_header(NAME ORIGINAL): writes the header NAME, with the text rt_text if rt_expected,
# otherwise with the text ORIGINAL.
function(rt_lighter_header name original)
  if(NOT rt_expected)
    message(STATUS "${name} is of another version than the expected one: it stays as it is, and the "
      "build takes longer")
    set(rt_text "${original}")
  endif()
  file(WRITE ${RT_LIGHTER_HEADERS}/${name}.new "${rt_text}")
  file(COPY_FILE ${RT_LIGHTER_HEADERS}/${name}.new ${RT_LIGHTER_HEADERS}/${name}
    ONLY_IF_DIFFERENT)
endfunction()

# nlohmann/json.hpp without its literals ("..."_json). They are plain functions, so that GCC would
# instantiate the parser that they call in each translation unit that has the header.
get_target_property(rt_json_include nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
find_file(RT_JSON_HEADER nlohmann/json.hpp PATHS ${rt_json_include} REQUIRED)
file(READ ${RT_JSON_HEADER} rt_original)
set(rt_text "${rt_original}")
set(rt_expected TRUE)
foreach(call "parse(s, s + n)" "json_pointer(std::string(s, n))")
  rt_replace("{\n    return nlohmann::json::${call};\n}" "= delete;")
endforeach()
rt_lighter_header(nlohmann/json.hpp "${rt_original}")

# nlohmann/detail/json_ref.hpp, the element of an initializer list, with a constructor for literals:
# GCC would instantiate the general constructor, and what it calls, for each length of a key.
find_file(RT_JSON_REF_HEADER nlohmann/detail/json_ref.hpp PATHS ${rt_json_include} REQUIRED)
file(READ ${RT_JSON_REF_HEADER} rt_original)
set(rt_text "${rt_original}")
set(rt_expected TRUE)
set(rt_general_constructor "    template <\n        class... Args,\n")
rt_replace("${rt_general_constructor}" "    json_ref(const char* text)
        : owned_value(typename value_type::string_t(text))
    {}

${rt_general_constructor}")
rt_lighter_header(nlohmann/detail/json_ref.hpp "${rt_original}")

# boost/system/result.hpp without the functions that throw a result's std::error_code or
# boost::system::error_code; ours hold rt::Error. With these functions the header has Boost's error
# categories, and GCC would compile their virtual functions in each translation unit.
find_file(RT_RESULT_HEADER boost/system/result.hpp PATHS ${Boost_INCLUDE_DIRS} REQUIRED)
file(READ ${RT_RESULT_HEADER} rt_original)
set(rt_text "${rt_original}")
set(rt_expected FALSE)
set(rt_thrower "BOOST_NORETURN BOOST_NOINLINE inline void throw_exception_from_error(")
string(FIND "${rt_text}" "${rt_thrower} error_code const & e" rt_begin)
string(FIND "${rt_text}" "${rt_thrower} std::exception_ptr const & p" rt_end)
if(rt_begin GREATER 0 AND rt_end GREATER rt_begin)
  set(rt_expected TRUE)
  string(SUBSTRING "${rt_text}" ${rt_end} -1 rt_after)
  string(SUBSTRING "${rt_text}" 0 ${rt_begin} rt_text)
  string(APPEND rt_text "${rt_after}")
  set(rt_include "#include <boost/system/")
  rt_replace("${rt_include}errc.hpp>\n" "${rt_include}detail/errc.hpp>\n")
  rt_replace("${rt_include}system_error.hpp>\n" "")
  rt_replace("${rt_include}detail/error_category_impl.hpp>\n" "")
  rt_replace("${rt_include}detail/error_code.hpp>\n"
    "namespace boost { namespace system { class error_code; } }\n")
endif()
rt_lighter_header(boost/system/result.hpp "${rt_original}")
