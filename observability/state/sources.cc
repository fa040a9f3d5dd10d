#include "observability/state/sources.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace rt::state {

Sources::Sources(const std::string& token, int64_t timeout_us)
    : timeout_us_(timeout_us), deadline_us_(steady_now_us() + timeout_us) {
  me_.role = "client";
  me_.token = token;
}

Sources::~Sources() {
  for (const auto& [place, connection] : kept_)
    connection->close(make_error(Code::kUnavailable, "the question is answered"));
  if (head_) head_->close(make_error(Code::kUnavailable, "the question is answered"));
}

Result<std::unique_ptr<Sources>> Sources::connect(const std::string& head_address,
                                                  const std::string& token, int64_t timeout_us,
                                                  int64_t connect_us) {
  std::unique_ptr<Sources> sources(new Sources(token, timeout_us));
  Place head;
  RT_ASSIGN(head.target.address, net::Address::parse(head_address));
  Result<std::shared_ptr<rpc::Connection>> outcome = make_error(
      Code::kTimeout,
      fmt::format("no answer from {} within {} s", head_address, timeout_us / 1'000'000));
  sources->head_target_ = head.target;
  bool finished = false;
  sources->connect_to(head, std::min(timeout_us, connect_us),
                      [&](Result<std::shared_ptr<rpc::Connection>> result) {
                        outcome = std::move(result);
                        finished = true;
                      });
  sources->run_until([&] { return finished; });
  if (!outcome) return outcome.error();
  if ((*outcome)->peer().role != "head") {
    return make_error(Code::kUnavailable,
                      fmt::format("{} is not the head's address but that of another process of a "
                                  "cluster: give the one `rayctl start --head` printed",
                                  head_address));
  }
  sources->head_ = std::move(*outcome);
  return sources;
}

Sources::Place Sources::place_of(const proto::Node& node, const std::string& target,
                                 const std::string& what) {
  Place place{{net::Address::tcp(node.ip(), node.port()), target, ""},
              fmt::format("{} {} ({})", what, to_hex(node.node_id()).substr(0, 8), node.ip())};
  place.troubled = !node.problem().empty();
  return place;
}

int64_t Sources::left_us() const { return std::max<int64_t>(1, deadline_us_ - steady_now_us()); }

Error Sources::no_time_left() const {
  return make_error(Code::kTimeout,
                    fmt::format("the {:g} s for the answer are over, and the question has more "
                                "parts: allow more time (--timeout)",
                                static_cast<double>(timeout_us_) / 1e6));
}

void Sources::run_until(const std::function<bool()>& done) {
  while (!done()) {
    loop_.flush_all();
    net::PollLoop::Ready ready;
    loop_.wait(ready, -1);
    loop_.dispatch(ready);
  }
}

void Sources::run_until_answered(const rpc::WaitedCall& call) {
  run_until([&] { return call.answered(); });
}

void Sources::allow(int64_t timeout_us) {
  timeout_us_ = timeout_us;
  deadline_us_ = steady_now_us() + timeout_us;
}

void Sources::ask_places(const std::vector<Place>& places, const Asking& how, const AskPlace& ask) {
  const int64_t end_us = steady_now_us() + (how.last ? left_us() : left_us() / 2) + how.takes_us;
  auto until_us = [](int64_t at_us) { return std::max<int64_t>(1, at_us - steady_now_us()); };
  std::vector<std::shared_ptr<rpc::Connection>> connections;
  std::map<size_t, int64_t> fresh;  // When each was asked; without those that are slow.
  size_t next = 0, open = 0;
  net::Loop::TimerId timer = 0;
  auto finish = [&](size_t at, const Status& status) {
    if (!status) note_place(places[at], status.error());
    fresh.erase(at);
    --open;
  };
  auto start = [&](size_t at) {
    const int64_t now_us = steady_now_us();
    fresh[at] = now_us;
    ++open;
    const int64_t its_end_us =
        places[at].troubled ? std::min(end_us, now_us + kTroubledUs + how.takes_us) : end_us;
    connect_to(places[at], until_us(its_end_us),
               [&, at, its_end_us](Result<std::shared_ptr<rpc::Connection>> connection) {
                 if (!connection) return finish(at, connection.error());
                 connections.push_back(*connection);
                 ask(at, **connection, until_us(its_end_us),
                     [&, at](const Status& status) { finish(at, status); });
               });
  };
  run_until([&] {
    const int64_t now_us = steady_now_us();
    std::erase_if(fresh, [&](const auto& one) { return now_us - one.second >= kSlowUs; });
    if (now_us >= end_us) {
      for (; next < places.size(); ++next)
        note_place(places[next], make_error(Code::kTimeout,
                                            "was not asked, because too many others do not "
                                            "answer"));
    }
    while (next < places.size() && fresh.size() < how.at_once && open < kMostOpen) start(next++);
    if (next < places.size() && !timer)
      timer = loop_.run_after(std::min(kSlowUs, until_us(end_us)), [&] { timer = 0; });
    return next == places.size() && open == 0;
  });
  if (timer) loop_.cancel(timer);
  for (const auto& connection : connections)
    connection->close(make_error(Code::kUnavailable, "the question is answered"));
}

Result<std::shared_ptr<rpc::Connection>> Sources::kept_connection(const Place& place) {
  std::string key =
      fmt::format("{} {} {}", place.target.address.to_string(), place.target.name, place.target.id);
  auto known = kept_.find(key);
  if (known != kept_.end() && known->second->is_open()) return known->second;
  Result<std::shared_ptr<rpc::Connection>> outcome =
      make_error(Code::kTimeout, place.name + " cannot be reached in time");
  bool finished = false;
  connect_to(place, left_us(), [&](Result<std::shared_ptr<rpc::Connection>> result) {
    outcome = std::move(result);
    finished = true;
  });
  run_until([&] { return finished; });
  if (!outcome)
    return make_error(outcome.error().code, place.name + ": " + outcome.error().message);
  kept_[key] = *outcome;
  return *outcome;
}

void Sources::connect_to(const Place& place, int64_t timeout_us,
                         std::function<void(Result<std::shared_ptr<rpc::Connection>>)> done) {
  rpc::connect(loop_, place.target, me_, timeout_us, std::move(done));
}

void Sources::note_place(const Place& place, const Error& why) {
  // A process that does not answer in time, or answers that it is too busy, still exists.
  if (place.may_be_gone && why.code != Code::kTimeout && why.code != Code::kResourceExhausted) {
    if (place.gone) missing_.push_back(fmt::format("{}: {}", place.name, place.gone));
    return;
  }
  note_missing(place.name, why);
}

void Sources::note_missing(const std::string& name, const Error& why) {
  missing_.push_back(fmt::format("{}: {}", name, why.message));
}

}  // namespace rt::state
