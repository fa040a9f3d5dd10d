#include "tests/sim/network.h"

#include <algorithm>

namespace rt::sim {

Process::Process(VirtualClock& clock, Network& network, int host)
    : clock_(clock), network_(network), host_(host), number_(++network.last_process_) {}

VirtualClock::Id Process::after(int64_t delay_us, const char* what, std::function<void()> run) {
  return clock_.after(delay_us, what, number_, [this, run = std::move(run)] {
    if (alive_) run();
  });
}

void Process::ring_by(Alarm& alarm, int64_t at_us, const char* what, std::function<void()> ring) {
  if (at_us < 0 || (alarm.timer && alarm.at_us <= at_us)) return;
  if (alarm.timer) clock_.cancel(alarm.timer);
  alarm.at_us = at_us;
  alarm.timer =
      after(std::max<int64_t>(0, at_us - clock_.now_us()), what, [&alarm, ring = std::move(ring)] {
        alarm.timer = 0;
        ring();
      });
}

void Process::end(Exit how) {
  if (!alive_) return;
  alive_ = false;
  network_.process_ended(*this, how);
}

// ---- one end of a connection

void Channel::send(const char* what, AtPeer at_peer) {
  if (open_) network_->transmit(*this, what, std::move(at_peer));
}

uint64_t Channel::wait_for_answer(std::function<void(const Error&)> failed, int64_t timeout_us) {
  std::weak_ptr<Channel> self = weak_from_this();
  uint64_t id = ++last_call_;
  if (!open_) {
    network_->clock_.after(0, "call fails", process_->number(),
                           [this, hold = shared_from_this(), failed = std::move(failed)] {
                             if (process_->alive())
                               failed(make_error(Code::kUnavailable, "the connection is closed"));
                           });
    return 0;
  }
  calls_[id] = std::move(failed);
  if (timeout_us < 0) return id;
  network_->clock_.after(timeout_us, "call timeout", process_->number(), [self, id] {
    auto here = self.lock();
    if (!here || !here->process_->alive()) return;
    auto waiting = here->calls_.extract(id);
    if (!waiting.empty()) waiting.mapped()(make_error(Code::kTimeout, "no answer in time"));
  });
  return id;
}

void Channel::close() {
  if (!open_) return;
  network_->fin(*this);
  open_ = false;
  network_->clock_.after(0, "closed", process_->number(), [hold = shared_from_this()] {
    hold->open_ = true;  // so that lost() runs once
    hold->lost();
  });
}

void Channel::lost() {
  if (!open_) return;
  open_ = false;
  ChannelPtr hold = shared_from_this();
  network_->forget_if_over(connection_);
  if (!process_->alive()) return;
  auto calls = std::move(calls_);
  calls_.clear();
  for (auto& [id, failed] : calls) failed(make_error(Code::kUnavailable, "the connection broke"));
  if (on_closed) std::exchange(on_closed, nullptr)();
}

// ---- the network

int64_t Network::delay_us(int a, int b) {
  bool local = a == b;
  int64_t low = local ? options_.local_min_us : options_.remote_min_us,
          high = local ? options_.local_max_us : options_.remote_max_us;
  if (!local && rng_.chance(options_.slow_message)) high = options_.slow_max_us;
  return low + static_cast<int64_t>(rng_.below(static_cast<uint64_t>(high - low + 1)));
}

void Network::connect(Process& from, int to_host, const char* what, std::function<Process*()> find,
                      std::function<void(Result<ChannelPtr>)> done) {
  auto fail = [this, &from, done](int64_t delay, Code code, const char* why) {
    clock_.after(delay, "connect fails", from.number(), [&from, done, code, why] {
      if (from.alive()) done(make_error(code, why));
    });
  };
  if (partitioned(from.host(), to_host))
    return fail(options_.connect_timeout_us, Code::kTimeout, "no route");
  clock_.after(delay_us(from.host(), to_host), what, from.number(),
               [this, &from, to_host, find, done, fail] {
                 if (!from.alive()) return;
                 if (partitioned(from.host(), to_host))
                   return fail(options_.connect_timeout_us, Code::kTimeout, "no route");
                 Process* to = find();
                 if (!to || !to->alive())
                   return fail(delay_us(from.host(), to_host), Code::kUnavailable,
                               "connection refused");
                 Connection& connection = connections_[++last_connection_];
                 Process* processes[2] = {&from, to};
                 for (int i = 0; i < 2; ++i) {
                   connection.ends[i] = std::make_shared<Channel>();
                   connection.ends[i]->network_ = this;
                   connection.ends[i]->process_ = processes[i];
                   connection.ends[i]->connection_ = last_connection_;
                   connection.hosts[i] = processes[i]->host();
                   of_process_[processes[i]->number()].insert(last_connection_);
                 }
                 connection.ends[0]->peer_ = connection.ends[1];
                 connection.ends[1]->peer_ = connection.ends[0];
                 ChannelPtr client = connection.ends[0], server = connection.ends[1];
                 to->accepted(server);
                 // Models the reply to the hello: the client may send once it has arrived, and the
                 // attempt fails if the connection breaks before.
                 auto told = std::make_shared<bool>(false);
                 client->on_closed = [done, told] {
                   if (!std::exchange(*told, true))
                     done(make_error(Code::kUnavailable, "the connection broke"));
                 };
                 server->send("connected", [client, done, told](Channel&) {
                   if (std::exchange(*told, true)) return;
                   client->on_closed = nullptr;
                   done(client);
                 });
               });
}

void Network::transmit(Channel& from, const char* what, Channel::AtPeer at_peer) {
  auto found = connections_.find(from.connection_);
  ChannelPtr peer = from.peer_.lock();
  if (found == connections_.end() || found->second.cut || !peer) return;
  int a = found->second.hosts[0], b = found->second.hosts[1];
  if (partitioned(a, b)) {
    held_[from.connection_].push_back({from.weak_from_this(), what, std::move(at_peer)});
    return;
  }
  from.last_arrival_us_ = std::max(from.last_arrival_us_, clock_.now_us() + delay_us(a, b));
  clock_.at(from.last_arrival_us_, what, peer->process_->number(),
            [this, peer, at_peer = std::move(at_peer)] {
              auto connection = connections_.find(peer->connection_);
              if (connection == connections_.end() || connection->second.cut || !peer->open_ ||
                  !peer->process_->alive())
                return;
              at_peer(*peer);
            });
}

void Network::fin(Channel& from) {
  transmit(from, "end of stream", [](Channel& there) { there.lost(); });
}

void Network::cut(Connection& connection, int64_t notice_max_us) {
  if (connection.cut) return;
  connection.cut = true;
  for (const ChannelPtr& end : connection.ends) {
    clock_.after(static_cast<int64_t>(rng_.below(static_cast<uint64_t>(notice_max_us) + 1)),
                 "connection lost", end->process_->number(), [end] { end->lost(); });
  }
}

void Network::process_ended(Process& process, Process::Exit how) {
  auto ended = of_process_.extract(process.number());
  if (ended.empty()) return;
  for (uint64_t id : ended.mapped()) {
    Connection& connection = connections_.at(id);
    for (const ChannelPtr& end : connection.ends) {
      if (end->process_ != &process || !end->open_) continue;
      if (how == Process::Exit::kOrderly) {
        fin(*end);
      } else {
        bool same_host = connection.hosts[0] == connection.hosts[1];
        cut(connection, same_host ? options_.local_max_us : options_.notice_lost_host_max_us);
      }
      end->open_ = false;
    }
    forget_if_over(id);
  }
}

void Network::forget_if_over(uint64_t id) {
  auto it = connections_.find(id);
  if (it == connections_.end() || it->second.ends[0]->open_ || it->second.ends[1]->open_) return;
  for (const ChannelPtr& end : it->second.ends) {
    auto of_process = of_process_.find(end->process_->number());
    if (of_process == of_process_.end()) continue;
    of_process->second.erase(id);
    if (of_process->second.empty()) of_process_.erase(of_process);
  }
  connections_.erase(it);
  held_.erase(id);
}

uint64_t Network::break_random(std::optional<int> of_host) {
  std::vector<uint64_t> candidates;
  for (const auto& [id, connection] : connections_) {
    if (of_host && std::ranges::find(connection.hosts, *of_host) == std::end(connection.hosts))
      continue;
    if (connection.hosts[0] != connection.hosts[1] && !connection.cut &&
        connection.ends[0]->open_ && connection.ends[1]->open_)
      candidates.push_back(id);
  }
  if (candidates.empty()) return 0;
  uint64_t id = candidates[rng_.below(candidates.size())];
  Connection& connection = connections_.at(id);
  ++broken_;
  if (on_broken) on_broken(*connection.ends[0]->process_, *connection.ends[1]->process_);
  cut(connection, options_.notice_max_us);
  return id;
}

void Network::partition(std::set<int> group, double broken_connections) {
  heal();  // or messages that an earlier partition holds back could be overtaken
  cut_off_ = std::move(group);
  for (auto& [id, connection] : connections_) {
    if (!partitioned(connection.hosts[0], connection.hosts[1]) || !rng_.chance(broken_connections))
      continue;
    ++broken_;
    if (on_broken) on_broken(*connection.ends[0]->process_, *connection.ends[1]->process_);
    cut(connection, options_.notice_lost_host_max_us);
  }
}

void Network::heal() {
  cut_off_.clear();
  auto held = std::move(held_);
  held_.clear();
  for (auto& [id, messages] : held) {
    for (Held& message : messages) {
      // The sending end may have been closed since, but the message was on its way already.
      if (auto from = message.from.lock())
        transmit(*from, message.what, std::move(message.at_peer));
    }
  }
}

}  // namespace rt::sim
