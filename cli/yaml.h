// JSON values as YAML documents for people and programs.
#pragma once

#include <string>

#include "common/api_json/node_json.h"

namespace rt::cli {

// "---", the value in block style with an indent of four, "...". Texts that YAML would take for
// something else are quoted. Never fails: what is not UTF-8 is replaced.
std::string yaml_document(const api_json::Json& value);
// The lines alone.
std::string yaml_lines(const api_json::Json& value);

}  // namespace rt::cli
