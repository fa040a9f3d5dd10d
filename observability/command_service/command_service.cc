#include "observability/command_service/command_service.h"

#include <fmt/core.h>
#include <pthread.h>

#include <map>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/rpc/connection.h"

namespace rt::command {
namespace {

// Commands are for people and their tools, so a few are enough.
constexpr size_t kMaxThreads = 8;

void refuse(google::protobuf::RpcController* call, google::protobuf::Closure* done, Error why) {
  rpc::server_call(call).fail(std::move(why));
  done->Run();
}

}  // namespace

void Commands::set(const std::string& name, std::shared_ptr<const Command> command) {
  // The earlier command is destroyed without the mutex: that may run code of the program.
  MutexLock lock(mutex_);
  if (command) {
    commands_[name].swap(command);
  } else if (auto known = commands_.find(name); known != commands_.end()) {
    known->second.swap(command);
    commands_.erase(known);
  }
}

std::shared_ptr<const Command> Commands::find(const std::string& name) const {
  MutexLock lock(mutex_);
  auto known = commands_.find(name);
  return known == commands_.end() ? nullptr : known->second;
}

struct CommandServer::State {
  Mutex mutex;
  // Null when the server is gone. Only the loop's thread changes it, holding the mutex, so that
  // this thread alone may read it without the mutex.
  net::Loop* loop;
  // The calls whose commands are under way. Used in the loop's thread only.
  std::map<google::protobuf::Closure*, google::protobuf::RpcController*> calls;
};

CommandServer::CommandServer(net::Loop& loop, const Commands* commands)
    : commands_(commands), state_(std::make_shared<State>()) {
  state_->loop = &loop;
}

CommandServer::~CommandServer() {
  {
    MutexLock lock(state_->mutex);
    state_->loop = nullptr;
  }
  // A call lives until it is answered, and its connection with it.
  for (auto [done, call] : std::exchange(state_->calls, {}))
    refuse(call, done, make_error(Code::kUnavailable, "the process ends"));
}

void CommandServer::Execute(google::protobuf::RpcController* call,
                            const proto::ProcessCommand* request, proto::ProcessAnswer* reply,
                            google::protobuf::Closure* done) {
  auto command = commands_ ? commands_->find(request->name()) : nullptr;
  if (!command)
    return refuse(call, done,
                  make_error(Code::kNotFound,
                             fmt::format("this process has no command '{}'", request->name())));
  if (state_->calls.size() >= kMaxThreads)
    return refuse(call, done,
                  make_error(Code::kResourceExhausted,
                             fmt::format("this process executes {} commands already: try again "
                                         "later",
                                         state_->calls.size())));
  auto thread =
      start_thread([state = state_, command, json = request->json(), call, reply, done]() mutable {
        pthread_setname_np(pthread_self(), "ray-command");
        auto answer = std::make_shared<Result<std::string>>((*command)(json));
        command.reset();
        MutexLock lock(state->mutex);
        if (!state->loop) return;
        state->loop->post([weak = std::weak_ptr<State>(state), answer, call, reply, done] {
          auto server = weak.lock();
          if (!server || !server->loop) return;
          server->calls.erase(done);
          if (!*answer) return refuse(call, done, answer->error());
          reply->set_json(std::move(**answer));
          done->Run();
        });
      });
  if (!thread) return refuse(call, done, thread.error());
  thread->detach();
  state_->calls.emplace(done, call);
}

}  // namespace rt::command
