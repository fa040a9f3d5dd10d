#include "daemons/node_manager/process/fork_servers.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/base/json_text.h"
#include "common/base/log.h"

namespace rt::node {
namespace {
constexpr int kMaxServerDeaths = 3;
constexpr int64_t kFirstBackoffUs = 100'000;
}  // namespace

ForkServers::ForkServers(net::Loop& loop, Reaper& reaper, ForkServersOptions options, Events events)
    : loop_(loop), reaper_(reaper), options_(std::move(options)), events_(std::move(events)) {}

ForkServers::~ForkServers() {
  *alive_ = false;
  for (auto& [id, entry] : servers_) {
    if (entry.timer) loop_.cancel(entry.timer);
  }
}

void ForkServers::start(const ForkServerKey& key) {
  if (auto server = running(key); !server) RT_ERROR("{}", server.error().message);
}

ForkServers::ServerId ForkServers::fork(const ForkServerKey& key, ForkRequest request,
                                        std::string* why) {
  auto found = running(key);
  if (!found && !key.plain() && found.error().code == Code::kResourceExhausted)
    found = running({.python = key.python, .preload = {}, .interpreter = {}, .env = {}});
  if (!found) {
    *why = found.error().message;
    return 0;
  }
  const Servers::iterator it = *found;
  Server& entry = it->second;
  if (!entry.key.env.empty()) {
    nlohmann::json names = nlohmann::json::array();
    for (const auto& [name, value] : entry.key.env) {
      names.push_back(name);
      request.env[name] = value;
    }
    // The worker must not apply them a second time: a value may name the variable itself.
    request.args["applied_variables"] = json_text(names);
  }
  ++entry.users;
  entry.process->fork(request);
  return it->first;
}

void ForkServers::release(ServerId id) {
  auto it = servers_.find(id);
  if (it == servers_.end()) return;  // It died and was replaced.
  Server& entry = it->second;
  --entry.users;
  RT_CHECK(entry.users >= 0);
  if (entry.users == 0 && !entry.key.plain() && entry.timer == 0)
    after(options_.idle_us, id, &ForkServers::end_idle);
}

void ForkServers::give_up_importing(ServerId id) {
  auto it = servers_.find(id);
  if (it == servers_.end() || it->second.key.plain()) return;
  Server& entry = it->second;
  if (!entry.process || entry.process->ready()) return;
  entry.given_up = true;
  entry.process->kill();
}

bool ForkServers::end() {
  if (!std::exchange(ending_, true)) {
    for (auto& [id, entry] : servers_) {
      if (entry.timer) loop_.cancel(std::exchange(entry.timer, 0));
      if (entry.process) entry.process->kill();
    }
  }
  return std::none_of(servers_.begin(), servers_.end(),
                      [](const auto& each) { return each.second.process != nullptr; });
}

// ---- the set of servers

ForkServers::Servers::iterator ForkServers::find(const ForkServerKey& key) {
  return std::find_if(servers_.begin(), servers_.end(),
                      [&](const auto& each) { return each.second.key == key; });
}

void ForkServers::erase(Servers::iterator it) {
  if (it->second.timer) loop_.cancel(it->second.timer);
  // It has no workers. Closing its socket would do, but an interpreter with large modules takes a
  // while to end, and a node that stops waits only for the servers in the table.
  if (it->second.process) it->second.process->kill();
  servers_.erase(it);
}

// Makes room for one more plain server, or for one more of the others, by replacing the least
// recently used one of that kind that has no workers. Returns false if all have workers.
bool ForkServers::make_room(bool special) {
  size_t count = 0;
  auto oldest = servers_.end();
  for (auto it = servers_.begin(); it != servers_.end(); ++it) {
    const Server& entry = it->second;
    if (entry.key.plain() == special) continue;
    ++count;
    bool own = !special && entry.key.python == options_.python;
    if (!own && entry.users == 0 &&
        (oldest == servers_.end() || entry.used_us < oldest->second.used_us))
      oldest = it;
  }
  if (count < (special ? kMaxSpecialServers : kMaxPlainServers)) return true;
  if (oldest == servers_.end()) return false;
  erase(oldest);
  return true;
}

int ForkServers::free_log_number() const {
  std::set<int> taken;
  for (const auto& [id, entry] : servers_) taken.insert(entry.log_number);
  int number = 0;
  while (taken.contains(number)) ++number;
  return number;
}

Result<ForkServers::Servers::iterator> ForkServers::running(const ForkServerKey& key) {
  if (ending_) return make_error(Code::kUnavailable, "the node stops");
  auto it = find(key);
  if (it == servers_.end()) {
    if (!make_room(!key.plain()))
      return make_error(
          Code::kResourceExhausted,
          fmt::format(
              "workers of {} Python interpreters run on this node, which is the limit; workers for "
              "{} start when one of them is no longer used",
              kMaxPlainServers, key.python));
    const int log_number = free_log_number();
    it = servers_.try_emplace(++last_id_).first;
    it->second.key = key;
    it->second.log_number = log_number;
  }
  Server& entry = it->second;
  entry.used_us = loop_.now_us();
  if (entry.process) {
    if (!key.plain() && entry.timer) loop_.cancel(std::exchange(entry.timer, 0));
    return it;
  }
  if (entry.crash_until_us > entry.used_us) return make_error(Code::kUnavailable, entry.crash);
  if (entry.timer && key.plain())
    return make_error(
        Code::kUnavailable,
        fmt::format("the fork server of {} is about to be started again", key.python));
  if (entry.timer) loop_.cancel(std::exchange(entry.timer, 0));
  launch(it->first, entry);
  if (!entry.process)
    return make_error(Code::kUnavailable,
                      fmt::format("the fork server of {} cannot be started", key.python));
  return it;
}

// ---- one server

void ForkServers::launch(ServerId id, Server& entry) {
  ForkServer::Options options;
  options.python = entry.key.python;
  options.python_path = options_.python_path;
  options.log_path =
      fmt::format("{}/logs/fork-server-{}.log", options_.session_dir,
                  entry.log_number == 0 ? "python" : std::to_string(entry.log_number));
  options.preload = entry.key.preload;
  if (!entry.key.interpreter.empty()) {
    nlohmann::json interpreter = parse_json(entry.key.interpreter);
    interpreter["session_dir"] = options_.session_dir;
    interpreter["python_path"] = options_.python_path;
    options.interpreter = ascii_json_text(interpreter);
  }
  options.env = options_.env;
  for (const auto& [name, value] : entry.key.env) options.env[name] = value;
  options.end_children = options_.end_children;
  ForkServer::Events events;
  events.on_ready = [this, id] { became_ready(id); };
  events.on_forked = events_.on_forked;
  events.on_fork_failed = events_.on_fork_failed;
  events.on_exited = events_.on_exited;
  events.on_died = [this, id, alive = alive_](const std::string& why) {
    if (*alive) died(id, why);
  };
  auto server = ForkServer::start(loop_, reaper_, options, std::move(events));
  if (server) {
    entry.process = std::move(*server);
  } else {
    RT_ERROR("{}", server.error().message);
  }
}

void ForkServers::became_ready(ServerId id) {
  auto it = servers_.find(id);
  if (it == servers_.end()) return;
  it->second.deaths = 0;
  it->second.crash.clear();
}

void ForkServers::died(ServerId id, const std::string& why) {
  auto it = servers_.find(id);
  if (it == servers_.end()) return;
  Server& entry = it->second;
  if (ending_) return entry.process.reset();
  RT_ERROR("{}", why);
  const bool was_ready = entry.process->ready();
  entry.process.reset();
  if (!entry.key.plain()) {
    if (!was_ready && !std::exchange(entry.given_up, false)) {
      entry.crash = why;
      entry.crash_until_us = loop_.now_us() + options_.crash_pause_us;
    }
    return events_.on_died(id, why);
  }
  ++entry.deaths;
  // Beyond the limit it stays down until the next request.
  if (entry.deaths <= kMaxServerDeaths)
    after(kFirstBackoffUs << (entry.deaths - 1), id, &ForkServers::restart);
  events_.on_died(id, why);
}

void ForkServers::after(int64_t delay_us, ServerId id, void (ForkServers::*what)(ServerId)) {
  servers_.at(id).timer = loop_.run_after(delay_us, [this, id, what, alive = alive_] {
    auto it = *alive ? servers_.find(id) : servers_.end();
    if (it == servers_.end()) return;
    it->second.timer = 0;
    (this->*what)(id);
  });
}

void ForkServers::restart(ServerId id) {
  Server& entry = servers_.at(id);
  if (!entry.process) launch(id, entry);
}

void ForkServers::end_idle(ServerId id) {
  auto it = servers_.find(id);
  if (it->second.users == 0) erase(it);
}

}  // namespace rt::node
