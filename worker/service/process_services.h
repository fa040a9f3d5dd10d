// The services of this process as a process, whatever it executes: stacks, profiles, commands.
// Every connection with another worker or with a tool offers them.
#pragma once

#include "common/net/loop.h"
#include "common/rpc/connection.h"
#include "observability/command_service/command_service.h"
#include "observability/profile_service/profile_service.h"

namespace rt::worker {

// See ProfileServer and CommandServer for the threads and the end.
class ProcessServices {
 public:
  // `commands` may be null and must outlive this object, as must the loop.
  ProcessServices(net::Loop& loop, const command::Commands* commands)
      : profile_(loop), command_(loop, commands) {}
  void offer(rpc::Connection& connection) {
    connection.add_service(&profile_);
    connection.add_service(&command_);
  }

 private:
  profile::ProfileServer profile_;
  command::CommandServer command_;
};

}  // namespace rt::worker
