#include "observability/state/train_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/utf8.h"
#include "observability/state/lookups.h"
#include "observability/state/sources.h"
#include "observability/state/train_runs.h"
#include "observability/state/train_waits.h"

namespace rt::state {
namespace {

using Asked = proto::ProfileService::Stub;

constexpr int kHz = 100;
// The time is looked at in this many parts (see RankWaits::parts).
constexpr int kParts = 2;

const Json* living_attempt(const Json& run) {
  const Json* found = nullptr;
  for (const Json& attempt : run["attempts"]) {
    for (const Json& worker : attempt["workers"]) {
      if (worker["status"] == "ALIVE") found = &attempt;
    }
  }
  return found;
}

// The ranks that are looked at, with the places of their processes.
struct Asking {
  std::vector<RankWaits> ranks;
  std::vector<Sources::Place> places;
};

Status choose(Sources& sources, const Json& attempt, Asking* asking) {
  for (const Json& worker : attempt["workers"]) {
    if (worker["status"] != "ALIVE") continue;
    RT_ASSIGN(auto found, actor_info(sources, text_of(worker, "actor_id")));
    RankWaits rank;
    rank.rank = number_of(worker, "world_rank");
    rank.pid = number_of(worker, "pid");
    rank.node_id = text_of(worker, "node_id");
    rank.node_ip = text_of(worker, "node_ip");
    const std::string name =
        fmt::format("rank {} (process {} on {})", rank.rank, rank.pid, printable(rank.node_ip));
    if (!found.found() || found.actor().state() != proto::ACTOR_ALIVE) {
      sources.note_missing(name, make_error(Code::kUnavailable, "its process has ended"));
      continue;
    }
    asking->places.push_back(
        {target_of(found.actor().address()), name, true, "the process ended meanwhile"});
    asking->ranks.push_back(std::move(rank));
  }
  return {};
}

// Collects the answers of one question.
class Collected {
 public:
  explicit Collected(Asking* asking) : asking_(*asking), trains_(asking->ranks.size()) {}

  void take(size_t at, const proto::StackSamples& samples) {
    trains_[at] = add_samples(samples, &asking_.ranks[at]) || trains_[at];
    for (const std::string& note : samples.notes()) {
      std::string text = fmt::format("{}: {}", asking_.places[at].name, printable(note));
      if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
    }
  }

  // Leaves the ranks whose training function was seen.
  std::vector<RankWaits> seen(Sources& sources) {
    std::vector<RankWaits> found;
    for (size_t at = 0; at < trains_.size(); ++at) {
      RankWaits& rank = asking_.ranks[at];
      if (trains_[at]) {
        found.push_back(std::move(rank));
      } else if (!rank.parts.empty()) {
        sources.note_missing(asking_.places[at].name,
                             make_error(Code::kUnavailable, "its training function does not run"));
      }
    }
    return found;
  }

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Asking& asking_;
  std::vector<char> trains_;  // By place.
  std::vector<std::string> notes_;
};

void ask(Sources& sources, const Asking& asking, double seconds, Collected* collected) {
  const auto take = [&](size_t at, const proto::StackSamples& samples) {
    collected->take(at, samples);
  };
  const size_t at_once = std::max<size_t>(1, asking.places.size());
  if (seconds == 0) {
    proto::StacksRequest request;
    sources.ask_each(asking.places, &Asked::GetStacks, request, {.at_once = at_once}, take);
    return;
  }
  proto::ProfileRequest request;
  request.set_hz(kHz);
  request.set_native(true);
  request.set_duration_ms(std::max<int64_t>(1, std::llround(seconds * 1000 / kParts)));
  for (int part = 0; part < kParts; ++part) {
    sources.ask_each(asking.places, &Asked::Profile, request,
                     {.at_once = at_once, .takes_us = request.duration_ms() * 1000}, take);
  }
}

// Adds the length of its steps to each rank that has reported it ("step_s"); returns the longest, 0
// if none is known.
double add_steps(const Json& metrics, Json* ranks) {
  double longest = 0;
  auto reported = metrics.find("ranks");
  if (reported == metrics.end() || !reported->is_array()) return 0;
  for (const Json& one : *reported) {
    if (!one.is_object()) continue;
    auto step = one.find("step_s");
    if (step == one.end() || !step->is_number()) continue;
    longest = std::max(longest, step->get<double>());
    for (Json& rank : *ranks) {
      if (rank["world_rank"] == number_of(one, "world_rank")) rank["step_s"] = *step;
    }
  }
  return longest;
}

}  // namespace

Answer answer_without_ranks(const Json& run, const std::vector<std::string>& missing) {
  return Answer{{{"run_id", text_of(run, "id")},
                 {"attempt_id", nullptr},
                 {"seconds", 0},
                 {"ranks", Json::array()},
                 {"verdict", "UNKNOWN"},
                 {"stragglers", Json::array()},
                 {"sentence", ""},
                 {"missing", missing},
                 {"notes", Json::array()}}};
}

Result<Answer> look_at_ranks(const Cluster& cluster, const Json& run, double seconds,
                             int64_t timeout_us) {
  if (!(seconds >= 0) || seconds > kMostLookSeconds)
    return make_error(Code::kInvalid,
                      fmt::format("a look at ranks takes 0 to {} seconds", kMostLookSeconds));
  const Json* attempt = living_attempt(run);
  if (!attempt && seconds == 0) return answer_without_ranks(run, {});
  if (!attempt)
    return make_error(Code::kNotFound,
                      fmt::format("run {} has no ranks that are alive: it is {}",
                                  printable(text_of(run, "name")), text_of(run, "status")));
  timeout_us += static_cast<int64_t>(seconds * 1e6);
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  Asking asking;
  RT_TRY(choose(*sources, *attempt, &asking));
  Collected collected(&asking);
  ask(*sources, asking, seconds, &collected);
  const std::vector<RankWaits> ranks = collected.seen(*sources);
  if (ranks.empty() && seconds > 0)
    return make_error(Code::kUnavailable, fmt::format("no rank could be looked at: {}",
                                                      fmt::join(sources->missing(), "; ")));
  Json answer = {{"run_id", text_of(run, "id")},
                 {"attempt_id", text_of(*attempt, "attempt_id")},
                 {"seconds", seconds}};
  Json& all = answer["ranks"] = Json::array();
  for (const RankWaits& rank : ranks) all.push_back(rank_json(rank));
  RankVerdict verdict{"UNKNOWN", {}, ""};
  if (seconds > 0) {
    auto metrics = train_metrics(cluster, text_of(run, "id"), Sources::kConnectUs);
    verdict = judge(ranks, seconds, metrics ? add_steps(metrics->json, &all) : 0);
  }
  answer["verdict"] = verdict.verdict;
  answer["stragglers"] = verdict.stragglers;
  answer["sentence"] = verdict.sentence;
  answer["missing"] = sources->missing();
  answer["notes"] = collected.notes();
  return Answer{std::move(answer)};
}

}  // namespace rt::state
