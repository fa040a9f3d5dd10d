// The resources of the state API with their columns, in the order of a row.
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
  bool detail = false;  // only in rows with detail
  bool filterable = false;
  std::vector<std::string> values;  // all there are; empty: anything
};

struct Resource {
  std::string name;  // "placement_groups"
  std::string id;    // the column rows are sorted by and get by
  std::vector<Column> columns;

  // -1: there is none.
  int column(std::string_view name) const;
  std::string filterable() const;  // for messages
};

// Null: there is no resource of this name.
const Resource* find_resource(std::string_view name);

}  // namespace rt::state
