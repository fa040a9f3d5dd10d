// Filters of lists: key = value or key != value. A row matches if all filters hold.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "observability/state/columns.h"

namespace rt::state {

struct Filter {
  std::string key;
  bool equal = true;  // False means not equal.
  std::string value;  // A text; bind() converts it to the type of the column.
};

// A value of a row as filters compare it. Texts are compared without regard to case; an absent
// value (monostate) equals nothing.
using Field = std::variant<std::monostate, std::string, int64_t, bool>;

// Filters that have been bound to the columns of a resource. Immutable after bind().
class Filters {
 public:
  // The error kInvalid names a column that cannot be filtered by, or a value that is not of the
  // column's type.
  static Result<Filters> bind(const Resource& resource, const std::vector<Filter>& filters);

  // Catches mistyped values on the command line: kInvalid names a value that the column never has,
  // and the possible ones. The other interfaces do not call this; such filters match no row there.
  static Status check_values(const Resource& resource, const std::vector<Filter>& filters);

  bool empty() const { return terms_.empty(); }
  // Whether a row matches. field(index) returns the row's value in the resource's column `index`;
  // it is called for filtered columns only.
  template <class F>
  bool match(F&& field) const {
    for (const Term& term : terms_) {
      if (equals(term, field(term.column)) != term.equal) return false;
    }
    return true;
  }
  // The text that the column `key` has to equal; null if no filter requires one.
  const std::string* required(std::string_view key) const;
  // Whether any filter uses the column `key`.
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
