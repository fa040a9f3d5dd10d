// Identifiers: fixed-size byte strings, each kind with a type of its own, so that one is never
// passed for another.
//
//   JobId      4 bytes: a counter, little-endian
//   ActorId   16 bytes: 12 unique + job id
//   TaskId    24 bytes: 8 unique + actor id; of a normal task 8 unique + 12 x 0xff + job id
//   GroupId   18 bytes: 14 unique + job id (a placement group)
//   ObjectId  28 bytes: task id + index, 4 bytes, little-endian
//   NodeId, ClusterId
//             28 bytes, random
//   WorkerId  28 bytes: 20 random + the first 8 of the node's id; of a driver its job id +
//             24 x 0xff
//
// A nil id is all 0xff.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

namespace rt {

class Rng;

std::string to_hex(std::string_view bytes);
// Returns an empty string when `hex` is not an even number of hex digits.
std::string from_hex(std::string_view hex);

template <class Tag, size_t N>
class Id {
 public:
  static constexpr size_t kSize = N;

  constexpr Id() { bytes_.fill(0xff); }
  static Id nil() { return Id(); }
  // Returns the nil id unless `bytes` has exactly kSize bytes. Input from peers is checked with
  // is_valid() first.
  static Id from_binary(std::string_view bytes) {
    Id id;
    if (bytes.size() == N) std::memcpy(id.bytes_.data(), bytes.data(), N);
    return id;
  }
  static bool is_valid(std::string_view bytes) { return bytes.size() == N; }
  static Id from_hex(std::string_view hex) { return from_binary(rt::from_hex(hex)); }
  static Id random(Rng& rng);

  bool is_nil() const { return *this == Id(); }
  std::string binary() const { return std::string(view()); }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), N}; }
  std::string hex() const { return to_hex(view()); }
  const uint8_t* data() const { return bytes_.data(); }
  uint8_t* data() { return bytes_.data(); }

  // Compares by words: a call of memcmp() costs more than the comparison, and ids are compared
  // everywhere.
  friend bool operator==(const Id& a, const Id& b) {
    if constexpr (N < sizeof(uint64_t)) {
      return a.bytes_ == b.bytes_;
    } else {
      uint64_t difference = a.word(N - sizeof(uint64_t)) ^ b.word(N - sizeof(uint64_t));
      for (size_t at = 0; at + sizeof(uint64_t) < N; at += sizeof(uint64_t))
        difference |= a.word(at) ^ b.word(at);
      return difference == 0;
    }
  }
  friend auto operator<=>(const Id&, const Id&) = default;

  size_t hash() const {
    // Ids differ in their leading unique part and, for objects, in the trailing index.
    uint64_t a = 0, b = 0;
    if constexpr (N >= 16) {
      a = word(0);
      b = word(N - sizeof b);
    } else {
      std::memcpy(&a, bytes_.data(), N < 8 ? N : 8);
    }
    uint64_t h = (a ^ (b * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
    return h ^ (h >> 32);
  }

 private:
  uint64_t word(size_t at) const {
    uint64_t value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  std::array<uint8_t, N> bytes_;
};

using JobId = Id<struct JobTag, 4>;
using ActorId = Id<struct ActorTag, 16>;
using TaskId = Id<struct TaskTag, 24>;
using GroupId = Id<struct GroupTag, 18>;
using ObjectId = Id<struct ObjectTag, 28>;
using NodeId = Id<struct NodeTag, 28>;
using WorkerId = Id<struct WorkerTag, 28>;
using ClusterId = Id<struct ClusterTag, 28>;

JobId job_id_from_int(uint32_t n);
uint32_t job_id_to_int(JobId id);

GroupId make_group_id(JobId job, Rng& rng);
JobId job_of(const GroupId& id);

ActorId make_actor_id(JobId job, uint64_t unique_high, uint32_t unique_low);
JobId job_of(const ActorId& id);

TaskId make_task_id(uint64_t unique, JobId job);          // A normal task.
TaskId make_task_id(uint64_t unique, const ActorId& id);  // A task of an actor.
TaskId driver_task_id(JobId job);
JobId job_of(const TaskId& id);
// Meaningful for tasks of actors only.
ActorId actor_of(const TaskId& id);

// The index of an object is 1, 2, ... for the returns of a task, and above kPutIndexBase for puts.
inline constexpr uint32_t kPutIndexBase = 100'000'000;
ObjectId make_object_id(const TaskId& task, uint32_t index);
TaskId task_of(const ObjectId& id);
uint32_t index_of(const ObjectId& id);
// The object that stands for the handles of an actor in reference counting: 8 x 0xff + actor id +
// index 1.
ObjectId handle_object_of(const ActorId& id);
WorkerId make_worker_id(const NodeId& node, Rng& rng);
WorkerId driver_worker_id(JobId job);
// The part of a node's id that the ids of its workers contain: equal numbers mean that the worker
// is, or was, on the node. The ids of drivers do not name their nodes.
uint64_t node_mark(const NodeId& id);
uint64_t node_mark(const WorkerId& id);
// Returns the job whose driver has this id; nil for the id of a worker.
JobId job_of_driver(const WorkerId& id);

}  // namespace rt

template <class Tag, size_t N>
struct std::hash<rt::Id<Tag, N>> {
  size_t operator()(const rt::Id<Tag, N>& id) const { return id.hash(); }
};
