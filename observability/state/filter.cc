#include "observability/state/filter.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <charconv>

namespace rt::state {
namespace {

Result<Field> convert(const Column& column, const std::string& text) {
  if (column.type == ColumnType::kInt) {
    int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return Field(number);
    return make_error(
        Code::kInvalid,
        fmt::format("Failed to convert the value '{}' of the filter on {} to an integer", text,
                    column.name));
  }
  if (column.type == ColumnType::kBool) {
    if (strcasecmp(text.c_str(), "true") == 0 || text == "1") return Field(true);
    if (strcasecmp(text.c_str(), "false") == 0 || text == "0") return Field(false);
    return make_error(
        Code::kInvalid,
        fmt::format(
            "Failed to convert the value '{}' of the filter on {} to a boolean: say true or false",
            text, column.name));
  }
  return Field(text);
}

}  // namespace

Result<Filters> Filters::bind(const Resource& resource, const std::vector<Filter>& filters) {
  Filters bound;
  for (const Filter& filter : filters) {
    int index = resource.column(filter.key);
    if (index < 0 || !resource.columns[index].filterable) {
      return make_error(
          Code::kInvalid,
          fmt::format(
              "The given filter column {} is not supported for {}. Supported filter columns: {}",
              filter.key, resource.name, resource.filterable()));
    }
    RT_ASSIGN(Field value, convert(resource.columns[index], filter.value));
    bound.terms_.push_back({index, filter.equal, std::move(value), filter.key});
  }
  return bound;
}

Status Filters::check_values(const Resource& resource, const std::vector<Filter>& filters) {
  for (const Filter& filter : filters) {
    int index = resource.column(filter.key);
    if (index < 0) continue;
    const auto& values = resource.columns[index].values;
    if (values.empty() || std::any_of(values.begin(), values.end(), [&](const std::string& value) {
          return strcasecmp(value.c_str(), filter.value.c_str()) == 0;
        }))
      continue;
    return make_error(Code::kInvalid,
                      fmt::format("the {} of {} is never '{}': it is one of {}", filter.key,
                                  resource.name, filter.value, fmt::join(values, ", ")));
  }
  return {};
}

bool Filters::equals(const Term& term, const Field& field) {
  if (term.value.index() != field.index()) return false;
  if (const auto* text = std::get_if<std::string>(&term.value))
    return strcasecmp(text->c_str(), std::get<std::string>(field).c_str()) == 0;
  return term.value == field;
}

bool Filters::looks_at(std::string_view key) const {
  return std::any_of(terms_.begin(), terms_.end(),
                     [&](const Term& term) { return term.key == key; });
}

const std::string* Filters::required(std::string_view key) const {
  for (const Term& term : terms_) {
    if (term.equal && term.key == key) return std::get_if<std::string>(&term.value);
  }
  return nullptr;
}

}  // namespace rt::state
