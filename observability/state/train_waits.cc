#include "observability/state/train_waits.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "common/base/utf8.h"

namespace rt::state {
namespace {

using proto::SampledFrame;

// Fewer samples of a rank say too little.
constexpr int64_t kLeastSamples = 40;
// The shares of the time that must lie between a straggler and those who wait for it: this much,
// and as many standard deviations of the two shares.
constexpr double kLeastGap = 0.15, kDeviations = 4;
// From this share on a rank counts as waiting all the time.
constexpr double kAlways = 0.97;
// The number of steps that one look must cover.
constexpr double kLeastSteps = 2;
// From this share on communication is worth a remark although nobody is late.
constexpr double kMuch = 0.3;
// An own activity that is named as the reason has at least this share of the straggler's time.
constexpr double kReason = 0.1;
constexpr size_t kMostFunctions = 3, kMostNamed = 8;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_training_function(const SampledFrame& frame) {
  return !frame.native() && frame.file().ends_with("ray/train/worker.py") &&
         frame.function().ends_with("_train");
}

// Returns the purpose of the moment as a frame alone tells it; kOwn if it tells none.
Doing doing_of(const SampledFrame& frame) {
  const std::string &name = frame.function(), &file = frame.file();
  if (frame.native()) {
    const bool is_collective = has(name, "c10d::") || name.starts_with("gloo::") ||
                               name.starts_with("nccl") || frame.module().starts_with("libnccl") ||
                               frame.module().starts_with("libgloo");
    return is_collective ? Doing::kCollective : Doing::kOwn;
  }
  if (file.ends_with("torch/distributed/distributed_c10d.py")) return Doing::kCollective;
  if (file.ends_with("ray/train/session.py") && name.ends_with("meet")) return Doing::kForRanks;
  if (file.ends_with("ray/train/reporter.py")) return Doing::kReport;
  if (file.ends_with("torch/utils/data/dataloader.py") ||
      file.ends_with("ray/train/torch/data_loader.py") || has(file, "/ray/train/data/"))
    return Doing::kData;
  return Doing::kOwn;
}

bool is_library(const std::string& file) {
  return has(file, "/site-packages/") || has(file, "/dist-packages/") || has(file, "/lib/python") ||
         has(file, "/ray/train/") || has(file, "/ray/_private/") || file.starts_with("<frozen");
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The frames of one stack that belong to the training function, and what they say.
class Moment {
 public:
  Moment(const proto::StackSamples& samples, const proto::SampledStack& stack) {
    int at = 0;
    while (at < stack.frames_size() && !is_training_function(frame(samples, stack, at))) ++at;
    trains_ = at < stack.frames_size();
    for (++at; at < stack.frames_size(); ++at) look(frame(samples, stack, at));
  }

  // Whether the thread executes the training function at all.
  bool trains() const { return trains_; }

  Doing doing(bool asleep) const {
    return doing_ == Doing::kOwn && asleep ? Doing::kOwnAsleep : doing_;
  }

  // Returns "train (a.py)" of the user's innermost function.
  std::string function() const {
    return user_ ? fmt::format("{} ({})", user_->function(), base_name(user_->file())) : "";
  }

  // Returns "train (a.py:7), in report(), waiting for other ranks".
  std::string place(Doing doing) const {
    std::string text = user_ ? fmt::format("{} ({}:{})", user_->function(),
                                           base_name(user_->file()), user_->line())
                             : "before the training function";
    switch (doing) {
      case Doing::kOwn: break;
      case Doing::kOwnAsleep:
        text += ", asleep";
        // Without native frames, the inner function's name tells backward() from an optimizer.
        if (inner_ && inner_ != user_) text += " in " + inner_->function();
        break;
      case Doing::kData: text += ", waiting for data"; break;
      case Doing::kReport: text += ", in report()"; break;
      case Doing::kForRanks:
        text += fmt::format(", in {}(), waiting for other ranks", call_);
        break;
      case Doing::kCollective: text += ", in a collective of torch.distributed"; break;
    }
    return text;
  }

 private:
  static const SampledFrame& frame(const proto::StackSamples& samples,
                                   const proto::SampledStack& stack, int at) {
    return samples.frames(static_cast<int>(stack.frames(at)));
  }

  // Frames come from the outermost to the innermost, which counts if several say something.
  void look(const SampledFrame& frame) {
    if (Doing said = doing_of(frame); said != Doing::kOwn) doing_ = said;
    if (frame.native()) return;
    if (frame.file().ends_with("ray/train/context.py") ||
        frame.file().ends_with("ray/train/collective.py"))
      call_ = frame.function();
    inner_ = &frame;
    // A function that an installed package has is better than none.
    if (!user_ || !is_library(frame.file())) user_ = &frame;
  }

  bool trains_ = false;
  Doing doing_ = Doing::kOwn;
  std::string call_ = "report";
  const SampledFrame *user_ = nullptr, *inner_ = nullptr;
};

std::string most_of(const std::map<std::string, int64_t>& counts) {
  auto most = std::max_element(counts.begin(), counts.end(),
                               [](auto& a, auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

int percent(double share) { return static_cast<int>(std::lround(100 * share)); }

// Returns "61 to 64 %".
std::string range_text(const std::vector<double>& shares) {
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  return percent(*least) == percent(*most)
             ? fmt::format("{} %", percent(*least))
             : fmt::format("{} to {} %", percent(*least), percent(*most));
}

std::vector<double> waiting_shares(const std::vector<const RankWaits*>& ranks) {
  std::vector<double> shares;
  for (const RankWaits* rank : ranks) shares.push_back(rank->time.waiting());
  return shares;
}

std::string place_of(const RankWaits& rank) {
  return fmt::format("node {} ({})", rank.node_id.substr(0, 12), rank.node_ip);
}

std::string ranks_text(const std::vector<const RankWaits*>& ranks) {
  std::vector<int64_t> numbers;
  for (const RankWaits* rank : ranks) numbers.push_back(rank->rank);
  std::sort(numbers.begin(), numbers.end());
  const size_t left_out = numbers.size() > kMostNamed ? numbers.size() - kMostNamed : 0;
  if (left_out) numbers.resize(kMostNamed);
  std::string text =
      fmt::format("{} {}", ranks.size() == 1 ? "Rank" : "Ranks", fmt::join(numbers, ", "));
  if (left_out) text += fmt::format(" and {} more", left_out);
  const bool one_node = std::all_of(ranks.begin(), ranks.end(), [&](const RankWaits* rank) {
    return rank->node_id == ranks[0]->node_id;
  });
  return one_node ? text + " on " + place_of(*ranks[0]) : text;
}

// Returns why a straggler is late: what it does while the others wait.
std::string reason_text(const std::vector<const RankWaits*>& ranks) {
  RankTime time;
  std::map<std::string, int64_t> functions;
  for (const RankWaits* rank : ranks) {
    time.add(rank->time);
    for (const auto& [name, count] : rank->functions) functions[name] += count;
  }
  const std::string who = ranks.size() == 1 ? "It" : "They";
  const std::string spends = ranks.size() == 1 ? "spends" : "spend";
  const double data = time.share(Doing::kData), report = time.share(Doing::kReport),
               own = time.share(Doing::kOwn) + time.share(Doing::kOwnAsleep);
  if (data >= std::max({own, report, kReason}))
    return fmt::format(" {} {} {} % waiting for data.", who, spends, percent(data));
  if (report >= std::max(own, kReason))
    return fmt::format(" {} {} {} % in report(), uploading a checkpoint or sending metrics.", who,
                       spends, percent(report));
  const std::string function = most_of(functions);
  if (function.empty()) return "";
  const double share = static_cast<double>(functions[function]) /
                       static_cast<double>(std::max<int64_t>(1, time.all()));
  if (share < kReason) return "";
  const bool asleep = time.share(Doing::kOwnAsleep) > time.share(Doing::kOwn);
  return fmt::format(" {} {} {} % {}in {}.", who, spends, percent(share), asleep ? "asleep " : "",
                     function);
}

// Whether these ranks wait less than each of the others in every part of the time.
bool always_less(const std::vector<const RankWaits*>& late,
                 const std::vector<const RankWaits*>& others) {
  size_t parts = SIZE_MAX;
  for (const auto* ranks : {&late, &others}) {
    for (const RankWaits* rank : *ranks) parts = std::min(parts, rank->parts.size());
  }
  for (size_t part = 0; part < parts; ++part) {
    double most = 0, least = 1;
    for (const RankWaits* rank : late) most = std::max(most, rank->parts[part].waiting());
    for (const RankWaits* rank : others) least = std::min(least, rank->parts[part].waiting());
    if (most >= least) return false;
  }
  return true;
}

double variance(const RankTime& time) {
  const double share = time.waiting();
  return share * (1 - share) / static_cast<double>(std::max<int64_t>(1, time.all()));
}

// Divides ranks, which are sorted by their waiting, at the largest gap: the first ones, at most
// half of all, wait less than the rest. Returns how many; 0 if no gap is large enough.
size_t count_late(const std::vector<const RankWaits*>& sorted) {
  size_t found = 0;
  double largest = 0;
  for (size_t count = 1; count <= sorted.size() / 2; ++count) {
    const RankTime &less = sorted[count - 1]->time, &more = sorted[count]->time;
    const double gap = more.waiting() - less.waiting(),
                 chance = kDeviations * std::sqrt(variance(less) + variance(more));
    if (gap < std::max(kLeastGap, chance) || gap <= largest) continue;
    largest = gap;
    found = count;
  }
  const auto late = sorted.begin() + static_cast<std::ptrdiff_t>(found);
  return found && always_less({sorted.begin(), late}, {late, sorted.end()}) ? found : 0;
}

RankVerdict unknown(std::string why) { return {"UNKNOWN", {}, std::move(why)}; }

RankVerdict straggler(const std::vector<const RankWaits*>& late,
                      const std::vector<const RankWaits*>& others, double seconds) {
  RankVerdict found{"STRAGGLER", {}, ""};
  for (const RankWaits* rank : late) found.stragglers.push_back(rank->rank);
  std::sort(found.stragglers.begin(), found.stragglers.end());
  const bool one = late.size() == 1;
  found.sentence = fmt::format(
      "{} {}: in {:.1f} s {} {} {} of the time for other ranks, in collectives and report(), while "
      "{} {}.{}",
      ranks_text(late), one ? "is the straggler" : "are the stragglers", seconds,
      one ? "it" : "they", one ? "waits" : "wait", range_text(waiting_shares(late)),
      others.size() == 1 ? fmt::format("rank {} waits", others[0]->rank) : "the others wait",
      range_text(waiting_shares(others)), reason_text(late));
  return found;
}

RankVerdict all_wait(const std::vector<RankWaits>& ranks, double seconds) {
  std::string text = fmt::format("All ranks have waited for each other for {:.1f} s:", seconds);
  for (size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{} rank {} at {}", i ? ";" : "", ranks[i].rank, most_of(ranks[i].places));
  if (ranks.size() > kMostNamed) text += fmt::format("; and {} more", ranks.size() - kMostNamed);
  return {"ALL_WAIT",
          {},
          text +
              ". All ranks must make the same calls in the same order; otherwise the network "
              "between their nodes does not carry them."};
}

}  // namespace

int64_t RankTime::all() const {
  return std::accumulate(samples.begin(), samples.end(), int64_t{0});
}

double RankTime::share(Doing doing) const {
  const int64_t total = all();
  return total ? static_cast<double>(of(doing)) / static_cast<double>(total) : 0;
}

void RankTime::add(const RankTime& other) {
  for (size_t i = 0; i < kDoings; ++i) samples[i] += other.samples[i];
}

bool add_samples(const proto::StackSamples& samples, RankWaits* rank) {
  RankTime time;
  bool trains = false;
  for (const auto& stack : samples.stacks()) {
    const Moment moment(samples, stack);
    if (!moment.trains()) continue;
    trains = true;
    for (const bool asleep : {false, true}) {
      const int64_t count = asleep ? stack.off_cpu() : stack.on_cpu();
      if (count == 0) continue;
      const Doing doing = moment.doing(asleep);
      time.samples[static_cast<size_t>(doing)] += count;
      rank->places[moment.place(doing)] += count;
      if (doing == Doing::kOwn || doing == Doing::kOwnAsleep)
        rank->functions[moment.function()] += count;
    }
  }
  rank->functions.erase("");
  rank->time.add(time);
  rank->parts.push_back(time);
  return trains;
}

RankVerdict judge(const std::vector<RankWaits>& ranks, double seconds, double step_s) {
  if (ranks.size() < 2) return unknown("There are no two ranks to compare.");
  for (const RankWaits& rank : ranks) {
    if (rank.time.all() < kLeastSamples)
      return unknown(
          fmt::format("Rank {} was seen {} times, which is too little to compare it: "
                      "look for longer.",
                      rank.rank, rank.time.all()));
  }
  if (std::all_of(ranks.begin(), ranks.end(),
                  [](const RankWaits& rank) { return rank.time.waiting() >= kAlways; }))
    return all_wait(ranks, seconds);
  if (step_s * kLeastSteps > seconds)
    return unknown(
        fmt::format("A step takes {:.1f} s: look for at least {:.0f} s to compare ranks.", step_s,
                    std::ceil(step_s * kLeastSteps)));
  std::vector<const RankWaits*> sorted;
  for (const RankWaits& rank : ranks) sorted.push_back(&rank);
  std::stable_sort(sorted.begin(), sorted.end(), [](const RankWaits* a, const RankWaits* b) {
    return a->time.waiting() < b->time.waiting();
  });
  if (const size_t count = count_late(sorted)) {
    const auto late = sorted.begin() + static_cast<std::ptrdiff_t>(count);
    return straggler({sorted.begin(), late}, {late, sorted.end()}, seconds);
  }
  const std::vector<double> shares = waiting_shares(sorted);
  RankVerdict none{"NONE", {}, ""};
  none.sentence = fmt::format(
      "No straggler: in {:.1f} s the ranks waited {} of the time for each "
      "other.{}",
      seconds, range_text(shares),
      shares.front() >= kMuch ? " Communication itself takes the time, or each is late in turn."
                              : "");
  return none;
}

Json rank_json(const RankWaits& rank) {
  Json json = {{"world_rank", rank.rank},
               {"node_id", rank.node_id},
               {"node_ip", rank.node_ip},
               {"pid", rank.pid},
               {"samples", rank.time.all()}};
  static constexpr std::array<const char*, kDoings> kNames = {"own",    "own_asleep", "data",
                                                              "report", "for_ranks",  "collective"};
  Json& shares = json["shares"] = Json::object();
  for (size_t i = 0; i < kDoings; ++i) shares[kNames[i]] = rank.time.share(static_cast<Doing>(i));
  json["where"] = valid_utf8(most_of(rank.places));
  std::vector<std::pair<std::string, int64_t>> functions(rank.functions.begin(),
                                                         rank.functions.end());
  std::stable_sort(functions.begin(), functions.end(),
                   [](auto& a, auto& b) { return a.second > b.second; });
  Json& named = json["functions"] = Json::array();
  for (size_t i = 0; i < std::min(functions.size(), kMostFunctions); ++i)
    named.push_back({{"name", valid_utf8(functions[i].first)},
                     {"share", static_cast<double>(functions[i].second) /
                                   static_cast<double>(std::max<int64_t>(1, rank.time.all()))}});
  return json;
}

}  // namespace rt::state
