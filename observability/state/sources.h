// The connections of one question to a cluster: to the head, to node-managers, and to workers and
// drivers. All calls block the caller, who must be a single thread. Sources that do not answer in
// time are recorded in missing() instead of failing the question.
//
// A question has one deadline. The head's answers may take all the time up to it, because nothing
// can be said without them. Nodes and processes get half of the time that is left when they are
// asked, so that one which hangs leaves time for what the question asks next. A node that the head
// says does not work as it should gets kTroubledUs at most.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/net/poll_loop.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"

namespace rt::state {

class Sources {
 public:
  // See Cluster::connect_us.
  static constexpr int64_t kConnectUs = 2'500'000;
  // This is enough for a node that is merely overloaded. A node that hangs would otherwise take
  // half of the question's time, though it will hardly answer.
  static constexpr int64_t kTroubledUs = kConnectUs;

  // Connects to the head at `head_address` (HOST:PORT). Returns kUnavailable, kTimeout or
  // kUnauthenticated within `connect_us` if the head cannot be asked. All further calls share a
  // deadline, `timeout_us` from now.
  static Result<std::unique_ptr<Sources>> connect(const std::string& head_address,
                                                  const std::string& token, int64_t timeout_us,
                                                  int64_t connect_us = kConnectUs);
  ~Sources();

  template <class Method>
  Result<typename rpc::StubMethod<Method>::ReplyType> ask_head(
      Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
    if (steady_now_us() >= deadline_us_) return no_time_left();
    rpc::WaitedCall waited(left_us());
    waited.send(*head_, method, request);
    run_until_answered(waited);
    return waited.take<typename rpc::StubMethod<Method>::ReplyType>();
  }

  // A process on some node: the node-manager ("self"), or a worker or driver of that node.
  struct Place {
    rpc::Target target;
    std::string name;  // The name for messages.
    // With `may_be_gone`, an error other than a timeout or an overload means that the process has
    // ended. Nothing is missing then, unless `gone` has a text to report.
    bool may_be_gone = false;
    const char* gone = nullptr;
    // Whether it gets no more than kTroubledUs.
    bool troubled = false;
  };
  // The node-manager ("self") of a node, or its object store ("store").
  static Place place_of(const proto::Node& node, const std::string& target = "self",
                        const std::string& what = "node");
  struct Asking {
    // How many places are asked at the same time. Those that have not answered for kSlowUs do not
    // count, up to kMostOpen, so that the others are asked even if many hang.
    size_t at_once = kAtOnce;
    // How long a place works on its answer by itself; that long is added to its time.
    int64_t takes_us = 0;
    // Whether nothing is asked afterwards, so that the places may take all the time that is left.
    bool last = false;
  };
  // Asks all places. Calls on_reply(index, reply) for each answer; places that do not answer in
  // their time (see the top) are added to missing().
  template <class Method, class OnReply>
  void ask_each(const std::vector<Place>& places, Method method, OnReply on_reply) {
    ask_each(places, method, proto::Empty(), Asking(), on_reply);
  }
  template <class Method, class OnReply>
  void ask_each(const std::vector<Place>& places, Method method,
                const typename rpc::StubMethod<Method>::RequestType& request, const Asking& how,
                OnReply on_reply) {
    using Reply = typename rpc::StubMethod<Method>::ReplyType;
    ask_places(places, how,
               [&](size_t at, rpc::Connection& connection, int64_t timeout_us, Answered answered) {
                 rpc::call(connection, method, request, timeout_us,
                           [&, at, answered = std::move(answered)](Result<Reply> reply) {
                             if (reply) on_reply(at, *reply);
                             answered(reply ? Status() : reply.error());
                           });
               });
  }

  // Asks one process. The connection is kept for further calls to the same place. Errors are
  // returned, not added to missing().
  template <class Method>
  Result<typename rpc::StubMethod<Method>::ReplyType> ask_one(
      const Place& place, Method method,
      const typename rpc::StubMethod<Method>::RequestType& request) {
    RT_ASSIGN(auto connection, kept_connection(place));
    rpc::WaitedCall waited(left_us());
    waited.send(*connection, method, request);
    run_until_answered(waited);
    return waited.take<typename rpc::StubMethod<Method>::ReplyType>();
  }
  bool head_is_open() const { return head_->is_open(); }
  // Records a source that the answer lacks in whole or in part.
  void note_missing(const std::string& name, const Error& why);
  // Moves the deadline: the following calls have `timeout_us` from now.
  void allow(int64_t timeout_us);

  // The address of the head's process, for other services that it offers.
  const rpc::Target& head_target() const { return head_target_; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  static constexpr size_t kAtOnce = 32, kMostOpen = 1024;
  static constexpr int64_t kSlowUs = 300'000;
  using Answered = std::function<void(const Status&)>;
  using AskPlace = std::function<void(size_t at, rpc::Connection& connection, int64_t timeout_us,
                                      Answered answered)>;

  Sources(const std::string& token, int64_t timeout_us);
  int64_t left_us() const;
  Error no_time_left() const;
  // Connects to the places and calls `ask` for each; both end at the deadline of each place.
  void ask_places(const std::vector<Place>& places, const Asking& how, const AskPlace& ask);
  // Runs the loop until done(). It needs no timeout of its own: every call ends at the deadline.
  void run_until(const std::function<bool()>& done);
  void run_until_answered(const rpc::WaitedCall& call);
  Result<std::shared_ptr<rpc::Connection>> kept_connection(const Place& place);
  void connect_to(const Place& place, int64_t timeout_us,
                  std::function<void(Result<std::shared_ptr<rpc::Connection>>)> done);
  void note_place(const Place& place, const Error& why);

  net::PollLoop loop_;
  rpc::Identity me_;
  int64_t timeout_us_, deadline_us_;
  rpc::Target head_target_;
  std::shared_ptr<rpc::Connection> head_;
  std::map<std::string, std::shared_ptr<rpc::Connection>> kept_;  // By address and service.
  std::vector<std::string> missing_;
};

}  // namespace rt::state
