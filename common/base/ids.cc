#include "common/base/ids.h"

#include "common/base/rng.h"

namespace rt {

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (unsigned char c : bytes) {
    out.push_back(kDigits[c >> 4]);
    out.push_back(kDigits[c & 15]);
  }
  return out;
}

std::string from_hex(std::string_view hex) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (hex.size() % 2 != 0) return {};
  std::string out;
  out.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return {};
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return out;
}

template <class Tag, size_t N>
Id<Tag, N> Id<Tag, N>::random(Rng& rng) {
  Id id;
  for (size_t i = 0; i < N; i += 8) {
    uint64_t word = rng.next();
    std::memcpy(id.bytes_.data() + i, &word, N - i < 8 ? N - i : 8);
  }
  return id;
}

template NodeId NodeId::random(Rng&);
template WorkerId WorkerId::random(Rng&);
template ClusterId ClusterId::random(Rng&);
template TaskId TaskId::random(Rng&);
template ObjectId ObjectId::random(Rng&);
template ActorId ActorId::random(Rng&);
template GroupId GroupId::random(Rng&);

GroupId make_group_id(JobId job, Rng& rng) {
  GroupId id = GroupId::random(rng);
  std::memcpy(id.data() + GroupId::kSize - JobId::kSize, job.data(), JobId::kSize);
  return id;
}

JobId job_of(const GroupId& id) {
  return JobId::from_binary(id.view().substr(GroupId::kSize - JobId::kSize));
}

JobId job_id_from_int(uint32_t n) {
  JobId id;
  std::memcpy(id.data(), &n, 4);
  return id;
}

uint32_t job_id_to_int(JobId id) {
  uint32_t n;
  std::memcpy(&n, id.data(), 4);
  return n;
}

ActorId make_actor_id(JobId job, uint64_t unique_high, uint32_t unique_low) {
  ActorId id;
  std::memcpy(id.data(), &unique_high, 8);
  std::memcpy(id.data() + 8, &unique_low, 4);
  std::memcpy(id.data() + 12, job.data(), 4);
  return id;
}

JobId job_of(const ActorId& id) { return JobId::from_binary(id.view().substr(12)); }

TaskId make_task_id(uint64_t unique, JobId job) {
  TaskId id;
  std::memcpy(id.data(), &unique, 8);
  std::memcpy(id.data() + 20, job.data(), 4);
  return id;
}

TaskId make_task_id(uint64_t unique, const ActorId& actor) {
  TaskId id;
  std::memcpy(id.data(), &unique, 8);
  std::memcpy(id.data() + 8, actor.data(), 16);
  return id;
}

TaskId driver_task_id(JobId job) { return make_task_id(~uint64_t{0}, job); }
JobId job_of(const TaskId& id) { return JobId::from_binary(id.view().substr(20)); }
ActorId actor_of(const TaskId& id) { return ActorId::from_binary(id.view().substr(8)); }

ObjectId make_object_id(const TaskId& task, uint32_t index) {
  ObjectId id;
  std::memcpy(id.data(), task.data(), 24);
  std::memcpy(id.data() + 24, &index, 4);
  return id;
}

TaskId task_of(const ObjectId& id) { return TaskId::from_binary(id.view().substr(0, 24)); }

uint32_t index_of(const ObjectId& id) {
  uint32_t index;
  std::memcpy(&index, id.data() + 24, 4);
  return index;
}

ObjectId handle_object_of(const ActorId& id) {
  return make_object_id(make_task_id(~uint64_t{0}, id), 1);
}

WorkerId make_worker_id(const NodeId& node, Rng& rng) {
  WorkerId id = WorkerId::random(rng);
  std::memcpy(id.data() + WorkerId::kSize - sizeof(uint64_t), node.data(), sizeof(uint64_t));
  return id;
}

uint64_t node_mark(const NodeId& id) {
  uint64_t mark;
  std::memcpy(&mark, id.data(), sizeof mark);
  return mark;
}

uint64_t node_mark(const WorkerId& id) {
  uint64_t mark;
  std::memcpy(&mark, id.data() + WorkerId::kSize - sizeof mark, sizeof mark);
  return mark;
}

WorkerId driver_worker_id(JobId job) {
  WorkerId id;
  std::memcpy(id.data(), job.data(), 4);
  return id;
}

JobId job_of_driver(const WorkerId& id) {
  const JobId job = JobId::from_binary(id.view().substr(0, JobId::kSize));
  return id == driver_worker_id(job) ? job : JobId::nil();
}

}  // namespace rt
