// Label selectors as people write them: {label: v | !v | in(a, b) | !in(a, b)}. (Python programs
// check theirs in ray/_private/constraints.py.)
#pragma once

#include <map>
#include <string>

#include "common/base/status.h"
#include "common/proto/common.pb.h"

namespace rt {

// kInvalid names what is no label and what is no expression.
Result<proto::LabelSelector> parse_label_selector(
    const std::map<std::string, std::string>& selector);

}  // namespace rt
