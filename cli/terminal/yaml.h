// Writes JSON values as YAML documents.
#pragma once

#include <string>

#include "observability/api_json/node_json.h"

namespace rt::cli {

// A complete document: "---", the value in block style with an indent of four, "...". Strings that
// YAML would read as another type are quoted. Never fails: invalid UTF-8 is replaced.
std::string yaml_document(const api_json::Json& value);
// Returns the same without the lines "---" and "...".
std::string yaml_lines(const api_json::Json& value);

}  // namespace rt::cli
