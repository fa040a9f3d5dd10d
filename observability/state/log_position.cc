#include "observability/state/log_position.h"

#include <fmt/core.h>

#include <sstream>

#include "common/base/bytes.h"
#include "common/base/ids.h"

namespace rt::state {

std::string LogPosition::text() const {
  return fmt::format("{} {} {} {} {}", node_id, inode, offset, inside ? 1 : 0, to_hex(name));
}

Result<LogPosition> LogPosition::parse(const std::string& text) {
  LogPosition position;
  std::istringstream in(text);
  std::string name, more;
  int inside = 0;
  bool whole = static_cast<bool>(in >> position.node_id >> position.inode >> position.offset >>
                                 inside >> name) &&
               !(in >> more);
  position.name = from_hex(name);
  position.inside = inside == 1;
  if (!whole || position.offset < 0 || position.name.empty())
    return make_error(
        Code::kInvalid,
        fmt::format("position is '{}': it takes what an earlier answer has given", text));
  return position;
}

}  // namespace rt::state
