// The resources of the state API and their columns, in the order in which rows have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rt::state {

enum class ColumnType : uint8_t { kText, kInt, kBool, kOther };

struct Column {
  std::string name;
  ColumnType type = ColumnType::kText;
  bool detail = false;  // Whether the column is only in rows with detail.
  bool filterable = false;
  std::vector<std::string> values;  // All possible values; empty if any value is possible.
};

struct Resource {
  std::string name;  // For example "placement_groups".
  std::string id;    // The column by which rows are sorted and which `get` looks up.
  std::vector<Column> columns;

  // The index of a column; -1 if there is none of that name.
  int column(std::string_view name) const;
  // The names of the columns that can be filtered by, for messages.
  std::string filterable() const;
};

// Null if there is no resource of this name. The resources live as long as the process.
const Resource* find_resource(std::string_view name);

}  // namespace rt::state
