#include "cli/train/train_ranks_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/style.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

using api_json::Json;

std::string share_text(const Json& rank, std::initializer_list<const char*> names) {
  double share = 0;
  auto shares = rank.find("shares");
  if (shares == rank.end() || !shares->is_object()) return "";
  for (const char* name : names) share += double_of(*shares, name);
  return fmt::format("{} %", std::lround(100 * share));
}

std::string step_text(const Json& rank) {
  const double step_s = double_of(rank, "step_s");
  return step_s > 0 ? fmt::format("{:.3f}s", step_s) : "";
}

std::string node_text(const Json& rank) {
  return fmt::format("{} {}", text_of(rank, "node_ip"), text_of(rank, "node_id").substr(0, 12));
}

bool is_straggler(const Json& look, int64_t rank) {
  auto named = look.find("stragglers");
  if (named == look.end() || !named->is_array()) return false;
  for (const Json& one : *named) {
    if (one == rank) return true;
  }
  return false;
}

// Lines for the processes that did not answer, and for what an answer lacks.
std::string remarks_text(const Json& look) {
  std::string text;
  for (const char* kind : {"missing", "notes"}) {
    auto lines = look.find(kind);
    if (lines == look.end() || !lines->is_array()) continue;
    for (const Json& line : *lines) {
      if (line.is_string()) text += printable(line.get<std::string>()) + "\n";
    }
  }
  return text;
}

const Json& ranks_of(const Json& look) {
  static const Json kNone = Json::array();
  auto ranks = look.find("ranks");
  return ranks != look.end() && ranks->is_array() ? *ranks : kNone;
}

// "rank 1 (10.0.0.2 0123456789ab, process 42)".
std::string missing_rank_text(const Json& attempt, int64_t rank) {
  for (const Json& worker : attempt["workers"]) {
    if (number_of(worker, "world_rank") == rank)
      return fmt::format("rank {} ({}, process {})", rank, node_text(worker),
                         number_of(worker, "pid"));
  }
  return fmt::format("rank {}", rank);
}

}  // namespace

std::string train_look_text(const Json& look) {
  const bool late =
      text_of(look, "verdict") == "STRAGGLER" || text_of(look, "verdict") == "ALL_WAIT";
  std::string text = text_of(look, "sentence");
  if (!text.empty())
    text = (late ? painted(printable(text), Ink::kWarning) : printable(text)) + "\n\n";
  std::vector<Words> rows = {{"RANK", "NODE", "PID", "STEP", "COLLECTIVES", "FOR RANKS", "REPORT",
                              "DATA", "ASLEEP", "OWN", "WHERE MOST OF ALL"}};
  for (const Json& rank : ranks_of(look)) {
    const int64_t number = number_of(rank, "world_rank");
    const std::string name = std::to_string(number);
    rows.push_back({is_straggler(look, number) ? painted(name, Ink::kBad) : name, node_text(rank),
                    std::to_string(number_of(rank, "pid")), step_text(rank),
                    share_text(rank, {"collective"}), share_text(rank, {"for_ranks"}),
                    share_text(rank, {"report"}), share_text(rank, {"data"}),
                    share_text(rank, {"own_asleep"}), share_text(rank, {"own"}),
                    printable(text_of(rank, "where"))});
  }
  return text + table(rows) + remarks_text(look);
}

std::string train_places_text(const Json& look) {
  std::vector<Words> rows = {{"RANK", "WHERE IT IS NOW"}};
  for (const Json& rank : ranks_of(look))
    rows.push_back(
        {std::to_string(number_of(rank, "world_rank")), printable(text_of(rank, "where"))});
  return "\n" + table(rows) + remarks_text(look);
}

std::string train_missing_text(const Json& attempt) {
  auto waiting = attempt.find("waiting");
  if (waiting == attempt.end() || !waiting->is_object()) return "";
  auto missing = waiting->find("missing_ranks"), calls = waiting->find("calls");
  if (missing == waiting->end() || !missing->is_array() || calls == waiting->end() ||
      !calls->is_object())
    return "";
  Words late, others;
  for (const Json& rank : *missing) {
    if (rank.is_number_integer()) late.push_back(missing_rank_text(attempt, rank.get<int64_t>()));
  }
  for (const auto& [rank, call] : calls->items()) {
    if (call.is_string())
      others.push_back(
          fmt::format("rank {} in {}()", printable(rank), printable(call.get<std::string>())));
  }
  return fmt::format("  {} {} not come since {}, for which wait: {}\n", fmt::join(late, ", "),
                     late.size() == 1 ? "has" : "have",
                     local_time(number_of(*waiting, "since_time_ns") / 1'000'000),
                     fmt::join(others, ", "));
}

}  // namespace rt::cli
