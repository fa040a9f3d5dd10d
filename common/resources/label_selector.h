// Label selectors as people write them: {label: v | !v | in(a, b) | !in(a, b)}. (The Python package
// checks those of its users in ray/_private/constraints.py.)
#pragma once

#include <map>
#include <string>

#include "common/base/status.h"
#include "common/proto/common.pb.h"

namespace rt {

// kInvalid names the key that is no label, or the value that is no expression.
Result<proto::LabelSelector> parse_label_selector(
    const std::map<std::string, std::string>& selector);

}  // namespace rt
