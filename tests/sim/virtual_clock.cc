#include "tests/sim/virtual_clock.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace rt::sim {

VirtualClock::Id VirtualClock::at(int64_t steady_us, const char* what, uint64_t who,
                                  std::function<void()> run) {
  Id id = ++last_;
  due_.emplace(std::max(steady_us, now_us_), id);
  planned_.emplace(id, Event{what, who, std::move(run)});
  return id;
}

void VirtualClock::cancel(Id& id) {
  planned_.erase(id);  // step() skips the entry in due_
  id = 0;
}

bool VirtualClock::step() {
  while (!due_.empty()) {
    auto [at_us, id] = due_.top();
    due_.pop();
    auto found = planned_.find(id);
    if (found == planned_.end()) continue;
    Event event = std::move(found->second);
    planned_.erase(found);
    now_us_ = at_us;
    ++events_;
    note(event.what, event.who);
    event.run();
    return true;
  }
  return false;
}

void VirtualClock::note(const char* what, uint64_t who, uint64_t detail) {
  auto mix = [this](uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3ull; };
  mix(static_cast<uint64_t>(now_us_));
  for (const char* c = what; *c; ++c) mix(static_cast<uint8_t>(*c));
  mix(who);
  mix(detail);
  past_.push_back({now_us_, what, who, detail});
  if (past_.size() > kRemembered) past_.pop_front();
  if (print_)
    std::fprintf(stderr, "%12.3f ms  %-24s #%llu %llu\n", static_cast<double>(now_us_) / 1000, what,
                 static_cast<unsigned long long>(who), static_cast<unsigned long long>(detail));
}

std::string VirtualClock::recent() const {
  std::string out;
  for (const Past& past : past_) {
    out += fmt::format("  {:12.3f} ms  {:<24} #{}", static_cast<double>(past.at_us) / 1000,
                       past.what, past.who);
    out += past.detail ? fmt::format(" {}\n", past.detail) : "\n";
  }
  return out;
}

}  // namespace rt::sim
