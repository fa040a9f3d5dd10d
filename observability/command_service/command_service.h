// Executes the commands of this process for every peer that may connect to it.
//
// Threading: requests arrive and are answered in the loop's thread; in between each has a thread of
// its own. Commands cannot be interrupted and may wait for what the destroying thread holds, so
// the destructor does not wait for those under way: their callers hear that the process ends. It
// must run in the loop's thread (or under the loop's mutex), before the loop ends.
#pragma once

#include <memory>

#include "common/net/loop.h"
#include "common/proto/command.pb.h"
#include "observability/command_service/commands.h"

namespace rt::command {

class CommandServer final : public proto::CommandService {
 public:
  // `commands` must outlive the server; null means that there are none.
  CommandServer(net::Loop& loop, const Commands* commands);
  ~CommandServer() override;

  void Execute(google::protobuf::RpcController*, const proto::ProcessCommand*,
               proto::ProcessAnswer*, google::protobuf::Closure*) override;

 private:
  struct State;
  const Commands* commands_;
  // Shared with the threads, which may go on when the server is gone.
  std::shared_ptr<State> state_;
};

}  // namespace rt::command
