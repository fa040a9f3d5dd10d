#include "common/resources/label_selector.h"

#include <fmt/core.h>

#include <string_view>

#include "common/resources/label.h"

namespace rt {
namespace {

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

Result<proto::LabelRule> rule_of(const std::string& key, const std::string& expression) {
  size_t slash = key.rfind('/');
  std::string name = slash == std::string::npos ? key : key.substr(slash + 1);
  if (!is_label_word(name) ||
      (slash != std::string::npos && !is_label_prefix(key.substr(0, slash)))) {
    return make_error(
        Code::kInvalid,
        fmt::format("label selector: '{}' is no label: at most 63 letters, digits, '-', '_' and "
                    "'.', first and last alphanumeric, after an optional prefix and '/'",
                    key.substr(0, 100)));
  }
  std::string text = trimmed(expression);
  bool negative = text.starts_with("!");
  if (negative) text.erase(0, 1);
  bool several = text.starts_with("in(") && text.ends_with(")");
  std::string values = several ? text.substr(3, text.size() - 4) : text;
  proto::LabelRule rule;
  rule.set_key(key);
  rule.set_op(negative ? proto::LabelRule::NOT_IN : proto::LabelRule::IN);
  for (size_t from = 0; from <= values.size();) {
    size_t comma = several ? values.find(',', from) : std::string::npos;
    std::string value =
        trimmed(values.substr(from, comma == std::string::npos ? std::string::npos : comma - from));
    bool empty = value.empty() && !several;  // The value of a label may be empty.
    if (!empty && !is_label_word(value)) {
      return make_error(
          Code::kInvalid,
          fmt::format("label selector: '{}' of '{}': expected v, !v, in(a, b) or !in(a, b) with "
                      "values of at most 63 letters, digits, '-', '_' and '.', "
                      "first and last alphanumeric",
                      expression.substr(0, 100), key));
    }
    rule.add_values(value);
    if (comma == std::string::npos) break;
    from = comma + 1;
  }
  return rule;
}

}  // namespace

Result<proto::LabelSelector> parse_label_selector(
    const std::map<std::string, std::string>& selector) {
  proto::LabelSelector out;
  for (const auto& [key, expression] : selector) {
    RT_ASSIGN(*out.add_rules(), rule_of(key, expression));
  }
  return out;
}

}  // namespace rt
