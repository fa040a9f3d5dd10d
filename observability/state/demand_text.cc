#include "observability/state/demand_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/utf8.h"
#include "common/resources/resource_set.h"
#include "observability/state/groups.h"

namespace rt::state {
namespace {

// Ten thousand tasks in a thousand groups, or as many groups that differ, must not bury the page.
constexpr size_t kMostReasons = 3, kMostGroupLines = 20;

// Demands that one line shows: outside of groups one, inside of groups those of all groups.
struct DemandLine {
  const proto::Demand* first = nullptr;
  int64_t count = 0, in_groups = 0;
  std::vector<std::string> reasons;
  int64_t reasons_left_out = 0;
};

std::vector<DemandLine> merged(const proto::ClusterStatusReply& status) {
  std::vector<DemandLine> lines;
  std::map<std::tuple<ResourceSet, std::string, std::string, bool, std::string>, size_t> known;
  for (const auto& demand : status.demands()) {
    const bool in_group = !demand.group_id().empty();
    // Demands in groups have a reason for each bundle; those stand together below the line.
    auto [it, added] = known.try_emplace(
        {ResourceSet::from_proto(demand.resources()), demand.what(), demand.where(),
         demand.infeasible(), in_group ? std::string() : demand.waits_for()},
        lines.size());
    if (added) lines.push_back({&demand});
    DemandLine& line = lines[it->second];
    line.count += demand.count();
    if (in_group) line.in_groups += demand.count();
    if (demand.waits_for().empty() || std::find(line.reasons.begin(), line.reasons.end(),
                                                demand.waits_for()) != line.reasons.end())
      continue;
    if (line.reasons.size() < kMostReasons)
      line.reasons.push_back(demand.waits_for());
    else
      ++line.reasons_left_out;
  }
  return lines;
}

std::string line_text(const DemandLine& line) {
  const proto::Demand& demand = *line.first;
  std::string text =
      fmt::format(" {}: {}+ pending tasks/actors",
                  printable(ResourceSet::from_proto(demand.resources()).to_string()), line.count);
  if (line.in_groups > 0) text += fmt::format(" ({}+ using placement groups)", line.in_groups);
  if (demand.infeasible())
    text += demand.where().empty()
                ? " (infeasible: no node has that much; they wait until one joins)"
                : " (infeasible: no such node has that much; they wait until one joins)";
  if (!demand.what().empty() || !demand.where().empty()) {
    text += fmt::format(" [{}{}{}]", printable(demand.what()),
                        demand.what().empty() || demand.where().empty() ? "" : ", ",
                        demand.where().empty() ? "" : "only on " + printable(demand.where()));
  }
  text += "\n";
  for (const std::string& reason : line.reasons)
    text += fmt::format("  waiting for {}\n", printable(reason));
  if (line.reasons_left_out > 0)
    text += fmt::format("  and for {} more bundles\n", line.reasons_left_out);
  return text;
}

struct GroupLine {
  const proto::GroupInfo* first = nullptr;
  int64_t count = 0;
};

std::string group_lines(const proto::ClusterStatusReply& status) {
  std::vector<std::pair<std::string, GroupLine>> lines;
  std::map<std::pair<std::string, bool>, size_t> known;
  for (const auto& group : status.pending_groups()) {
    std::string text = homeless_text(group);
    auto [it, added] = known.try_emplace({text, group.infeasible()}, lines.size());
    if (added) lines.emplace_back(std::move(text), GroupLine{&group});
    ++lines[it->second].second.count;
  }
  std::string text;
  int64_t left_out = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& [bundles, line] = lines[i];
    if (i >= kMostGroupLines) {
      left_out += line.count;
      continue;
    }
    text += fmt::format(" {}: {}+ pending placement groups{}\n", printable(bundles), line.count,
                        line.first->infeasible() ? " (infeasible: the living nodes are too small "
                                                   "or too few; they wait until one joins)"
                                                 : "");
    if (!line.first->why().empty())
      text += fmt::format("  {}{}: {}\n", printable(group_title(*line.first)),
                          line.first->state() == proto::GROUP_RESCHEDULING
                              ? ", which lost bundles with their nodes"
                              : "",
                          printable(line.first->why()));
  }
  if (left_out > 0)
    text += fmt::format(
        " and {}+ more pending placement groups (`rayctl list placement-groups` "
        "shows them)\n",
        left_out);
  return text;
}

}  // namespace

std::string demand_lines(const proto::ClusterStatusReply& status) {
  std::string lines;
  for (const DemandLine& line : merged(status)) lines += line_text(line);
  if (status.demands_left_out() > 0)
    lines +=
        fmt::format(" and {}+ more with other resources (each node reports demands_per_node)\n",
                    status.demands_left_out());
  lines += group_lines(status);
  return lines.empty() ? " (no resource demands)\n" : lines;
}

}  // namespace rt::state
