// Where the ranks of a training run spend their time, found in samples of their stacks, and which
// rank the others wait for. Pure functions; train_ranks.h takes the samples.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/proto/profile.pb.h"
#include "observability/state/rows.h"

namespace rt::state {

// The purpose of a moment of the thread that trains. kCollective is in torch.distributed, gloo or
// NCCL, and kForRanks in a call of ray.train that waits for other ranks: in both the rank waits for
// the others. kReport is the rest of report(), such as uploads.
enum class Doing { kOwn, kOwnAsleep, kData, kReport, kForRanks, kCollective };
inline constexpr size_t kDoings = 6;

// Samples of one rank by purpose.
struct RankTime {
  std::array<int64_t, kDoings> samples{};

  int64_t of(Doing doing) const { return samples[static_cast<size_t>(doing)]; }
  int64_t all() const;
  double share(Doing doing) const;
  // The share of the time in which the rank waits for other ranks.
  double waiting() const { return share(Doing::kForRanks) + share(Doing::kCollective); }
  void add(const RankTime& other);
};

struct RankWaits {
  int64_t rank = 0, pid = 0;
  std::string node_id, node_ip;
  RankTime time;
  // The same for each part of the time in turn, so that what happens once can be told from what
  // happens all the time.
  std::vector<RankTime> parts;
  // Samples outside of waits by function of the user, and by place: "train (a.py:7), in report()".
  std::map<std::string, int64_t> functions, places;
};

// Adds the samples of a process that a rank took of itself as one part of the time. Returns whether
// a thread was seen that executes the training function.
bool add_samples(const proto::StackSamples& samples, RankWaits* rank);

struct RankVerdict {
  std::string verdict;  // STRAGGLER, NONE, ALL_WAIT or UNKNOWN.
  std::vector<int64_t> stragglers;
  std::string sentence;  // A sentence for people.
};
// Compares ranks that were looked at for `seconds`. `step_s` is the length of a step of the run, 0
// if it is not known: less than two steps say nothing about the others. Nobody is named unless the
// difference is larger than what chance gives and the same in each part of the time.
RankVerdict judge(const std::vector<RankWaits>& ranks, double seconds, double step_s);

// The object of one rank in answers: "world_rank", "node_id", "node_ip", "pid", "samples", "shares"
// (of the time, by purpose), "where" (the place that was seen most), and "functions"
// ([{"name", "share"}] of the user's functions outside of waits, the largest first).
Json rank_json(const RankWaits& rank);

}  // namespace rt::state
