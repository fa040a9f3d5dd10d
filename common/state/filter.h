// Filters of lists: key = value, key != value, all of them must hold.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/state/columns.h"

namespace rt::state {

struct Filter {
  std::string key;
  bool equal = true;  // else: not equal
  std::string value;  // text; converted to the column's type
};

// A row's value as filters compare it. Texts without regard to case; what is absent equals nothing.
using Field = std::variant<std::monostate, std::string, int64_t, bool>;

class Filters {
 public:
  // kInvalid names a column that cannot be filtered by, or a value that is not of the column's
  // type.
  static Result<Filters> bind(const Resource& resource, const std::vector<Filter>& filters);

  // For people, who mistype: kInvalid names a value that the column never has, and those it may
  // have. (Programs get no rows.)
  static Status check_values(const Resource& resource, const std::vector<Filter>& filters);

  bool empty() const { return terms_.empty(); }
  // `field(column)` is the row's value of the resource's column of that number; called for filtered
  // columns only.
  template <class F>
  bool match(F&& field) const {
    for (const Term& term : terms_) {
      if (equals(term, field(term.column)) != term.equal) return false;
    }
    return true;
  }
  // The text that `key` has to equal; null: there is no such filter.
  const std::string* required(std::string_view key) const;
  bool looks_at(std::string_view key) const;

 private:
  struct Term {
    int column = 0;
    bool equal = true;
    Field value;
    std::string key;
  };
  static bool equals(const Term& term, const Field& field);
  std::vector<Term> terms_;
};

}  // namespace rt::state
