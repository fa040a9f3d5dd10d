// Timeline: the process "placement groups", whose rows show the lives of the groups.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "common/base/json_text.h"
#include "common/proto/head.pb.h"
#include "observability/events/timeline.h"

namespace rt {
namespace {

// The life of a group on the wall clock: it waits until `placed_us` and exists until `end_us`. A
// group that was never placed waits until its end.
struct Life {
  const proto::GroupInfo* group = nullptr;
  int64_t start_us = 0, placed_us = 0, end_us = 0;
};

Life life_of(const proto::GroupInfo& group, int64_t now_us) {
  Life life{&group, group.created_ms() * 1000};
  // Times in milliseconds and clocks of two machines must not make a span of negative length.
  life.end_us = std::max(life.start_us, group.ended_ms() ? group.ended_ms() * 1000 : now_us);
  life.placed_us =
      group.placed_us() ? std::min(life.start_us + group.placed_us(), life.end_us) : life.end_us;
  return life;
}

// The row of each life, from 0, so that no two lives in one row overlap and there are as few rows
// as groups that existed at the same time. `lives` are sorted by their start.
std::vector<size_t> rows_of(const std::vector<Life>& lives) {
  std::vector<size_t> rows;
  size_t made = 0;
  std::set<size_t> free;
  using Busy = std::pair<int64_t, size_t>;  // until when, row
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  for (const Life& life : lives) {
    for (; !busy.empty() && busy.top().first <= life.start_us; busy.pop())
      free.insert(busy.top().second);
    rows.push_back(free.empty() ? made++ : free.extract(free.begin()).value());
    busy.emplace(life.end_us, rows.back());
  }
  return rows;
}

std::string args_of(const proto::GroupInfo& group, const std::string& why) {
  const proto::GroupSpec& spec = group.spec();
  nlohmann::ordered_json args = {{"placement_group_id", to_hex(spec.group_id())},
                                 {"name", spec.name()},
                                 {"strategy", proto::GroupSpec::Strategy_Name(spec.strategy())},
                                 {"bundles", spec.bundles_size()}};
  if (!why.empty()) args["why"] = why;
  return ascii_json_text(args);
}

}  // namespace

void Timeline::add_groups(const proto::ListGroupsReply& groups, int64_t now_us, std::string* json) {
  std::vector<Life> lives;
  for (const auto& group : groups.groups()) {
    const Life life = life_of(group, now_us);
    if (life.end_us >= options_.since_us &&
        (!options_.job || group.spec().job_id() == options_.job->binary()))
      lives.push_back(life);
  }
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return std::pair(a.end_us, a.start_us) > std::pair(b.end_us, b.start_us);
  });
  const size_t left_out = lives.size() - std::min<size_t>(lives.size(), kMostGroups);
  lives.resize(lives.size() - left_out);
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.start_us < b.start_us; });
  auto event = [&](const Thread& row, std::string_view name, int64_t ts_us, std::string_view shape,
                   std::string_view args) {
    *json += fmt::format(R"({}{{"cat":"placement_group","name":"{}",{},"ts":{}.0,{},"args":{}}})",
                         std::exchange(first_, false) ? "[" : ",\n", name, row.members, ts_us,
                         shape, args);
  };
  auto span = [&](const Thread& row, std::string_view name, int64_t from_us, int64_t to_us,
                  std::string_view colour, std::string_view args) {
    event(row, name, from_us,
          fmt::format(R"("dur":{}.0,"ph":"X","cname":"{}")", to_us - from_us, colour), args);
  };
  const std::vector<size_t> rows = rows_of(lives);
  for (size_t i = 0; i < lives.size(); ++i) {
    const auto& [group, start_us, placed_us, end_us] = lives[i];
    const Thread& row = named_thread(kGroupProcess, fmt::format("row {}", rows[i] + 1));
    if (i == 0 && left_out > 0)
      event(row, fmt::format("{} placement groups are left out", left_out), start_us,
            R"("ph":"i","s":"p")", "{}");
    const bool placed = group->placed_us() > 0;
    span(row, "waiting", start_us, placed_us, "bad", args_of(*group, placed ? "" : group->why()));
    if (!placed) continue;
    span(row, "created", placed_us, end_us, "good", args_of(*group, group->why()));
    if (group->lost_ms())
      event(row, "lost bundles", std::clamp(group->lost_ms() * 1000, placed_us, end_us),
            R"("ph":"i","s":"t")", args_of(*group, group->lost_why()));
  }
  groups_shown_ += static_cast<int64_t>(lives.size());
  groups_left_out_ += static_cast<int64_t>(left_out);
}

}  // namespace rt
