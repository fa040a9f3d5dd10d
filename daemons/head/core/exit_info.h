// Makes the descriptions of why a process or an actor has ended.
#pragma once

#include <string>
#include <utility>

#include "common/proto/common.pb.h"

namespace rt::head {

inline proto::ExitInfo exit_info(proto::ExitInfo::Kind kind, std::string message = {}) {
  proto::ExitInfo info;
  info.set_kind(kind);
  info.set_message(std::move(message));
  return info;
}

}  // namespace rt::head
