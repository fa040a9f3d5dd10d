#include "worker/service/gets.h"

#include <algorithm>
#include <utility>

#include "common/rpc/client.h"
#include "worker/core/value_codec.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"
#include "worker/service/shared.h"
#include "worker/session_over.h"

namespace rt::worker {
namespace {

// How long a get waits for values on this node when its deadline has passed: a deadline of now
// means to look, which takes an answer of the store.
constexpr int64_t kLookUs = 1'000'000;
// How long an owner may take to say where its object is.
constexpr int64_t kLocateUs = 30'000'000;

bool is_at_hand(const ObjectEntry& entry) { return entry.ready.load(std::memory_order_acquire); }

bool is_in_memory(const Ref& ref) {
  const auto& entry = entry_of(ref);
  return is_at_hand(entry) && entry.state == ObjectState::kInMemory;
}

// The index of the first ref whose value is an error or could not be fetched; refs.size() if
// there is none.
size_t failed_index(std::span<const Ref> refs, int64_t since_us) REQUIRES(worker_mutex) {
  for (size_t i = 0; i < refs.size(); ++i) {
    auto& entry = entry_of(refs[i]);
    if (!is_at_hand(entry)) continue;
    if (entry.state == ObjectState::kInMemory ? is_error(entry.blob.bytes())
                                              : entry.fetch_failed_since(since_us))
      return i;
  }
  return refs.size();
}

}  // namespace

bool Gets::any_awaited(std::span<const Ref> refs) const {
  const NodeId& node = parts_.shared.context.node_id;
  return std::any_of(refs.begin(), refs.end(),
                     [&](const Ref& ref) { return entry_of(ref).is_awaited_on(node); });
}

Waited Gets::wait_all(std::span<const Ref> refs, int64_t deadline_us, int64_t since_us) {
  // Values in memory need neither the lock nor a turn of the loop.
  if (std::all_of(refs.begin(), refs.end(), is_in_memory)) return Waited::kDone;
  Objects& objects = parts_.objects;
  WorkerLock lock(parts_.shared.mutex);
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    objects.resolve(entry);
    objects.fetch(entry, since_us, Fetch::kView);
  }
  size_t next = 0;
  auto all_local = [&] {
    assert_locked();
    for (; next < refs.size(); ++next) {
      auto& entry = entry_of(refs[next]);
      if (!is_at_hand(entry)) return false;
      if (!objects.is_local(entry)) {
        objects.fetch(entry, since_us, Fetch::kView);
        return false;
      }
    }
    return true;
  };
  uint64_t errors_seen = 0;
  bool failed = false;
  auto done = [&] {
    assert_locked();
    if (parts_.shared.stopping || all_local()) return true;
    // The refs are searched for errors only when this process has stored new ones.
    if (errors_seen == objects.errors_stored()) return false;
    errors_seen = objects.errors_stored();
    return failed = failed_index(refs, since_us) < refs.size();
  };
  auto awaited = [&] { return any_awaited(refs); };
  Waited result = parts_.pump.wait_until(lock, deadline_us, done, awaited);
  if (result == Waited::kTimeout && !awaited())
    result = parts_.pump.wait_until(lock, deadline_us + kLookUs, done, awaited);
  if (result != Waited::kDone || failed) objects.let_go(refs);
  return failed && result == Waited::kDone ? Waited::kFailed : result;
}

void Gets::errors_seen(std::span<const Ref> refs) {
  if (parts_.objects.errors_stored() == 0) return;
  for (const Ref& ref : refs) {
    const auto& entry = entry_of(ref);
    if (is_at_hand(entry)) entry.unseen_error.store(false, std::memory_order_relaxed);
  }
}

size_t Gets::first_failed(std::span<const Ref> refs, int64_t since_us) {
  WorkerLock lock(parts_.shared.mutex);
  return failed_index(refs, since_us);
}

Waited Gets::wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us,
                       int64_t since_us, bool fetch_local, std::vector<bool>* ready) {
  ready->assign(refs.size(), false);
  Objects& objects = parts_.objects;
  size_t found = 0;
  // Without the mutex only whether a value exists, and is in memory, can be told.
  auto exists = [&](const ObjectEntry& entry) {
    return is_at_hand(entry) && (!fetch_local || entry.state == ObjectState::kInMemory);
  };
  auto is_settled = [&](const ObjectEntry& entry) {
    assert_locked();
    if (!entry.ready) return false;
    // After a failed fetch the value exists elsewhere, and waiting longer does not bring it here.
    return objects.is_local(entry) || entry.is_on(parts_.shared.context.node_id) ||
           entry.fetch_failed_since(since_us);
  };
  auto scan = [&](bool locked) {
    for (size_t i = 0; i < refs.size() && found < count; ++i) {
      if ((*ready)[i]) continue;
      const auto& entry = entry_of(refs[i]);
      if (!exists(entry) && !(locked && is_settled(entry))) continue;
      (*ready)[i] = true;
      ++found;
    }
    return found >= count;
  };
  auto none_in_store = [&] {
    return std::all_of(refs.begin(), refs.end(), [](const Ref& ref) {
      return is_in_memory(ref) || !is_at_hand(entry_of(ref));
    });
  };
  if (scan(false) && (!fetch_local || none_in_store())) return Waited::kDone;
  WorkerLock lock(parts_.shared.mutex);
  for (const Ref& ref : refs) {
    auto& entry = entry_of(ref);
    objects.resolve(entry);
    if (fetch_local) objects.fetch(entry, since_us, Fetch::kCopy);
  }
  return parts_.pump.wait_until(
      lock, deadline_us,
      [&] {
        assert_locked();
        if (parts_.shared.stopping) return true;
        if (fetch_local) {
          for (const Ref& ref : refs) objects.fetch(entry_of(ref), since_us, Fetch::kCopy);
        }
        return scan(true);
      },
      [&] { return any_awaited(refs); });
}

bool Gets::on_ready(const Ref& ref, std::function<void()> callback) {
  auto& entry = entry_of(ref);
  WorkerLock lock(parts_.shared.mutex);
  if (entry.ready) return false;
  entry.mutable_details().waiters.push_back(std::move(callback));
  parts_.objects.resolve(entry);
  parts_.shared.loop.flush_all();
  parts_.pump.leave_wait();
  return true;
}

// The answers to locate(). They are shared, because an owner may answer after the deadline.
struct Gets::Answers {
  std::vector<Worker::Where> found;
  size_t waiting = 0;
};

Result<std::vector<Worker::Where>> Gets::locate(std::span<const Ref> refs, bool ask_owners,
                                                int64_t deadline_us) {
  auto answers = std::make_shared<Answers>();
  answers->found.resize(refs.size());
  WorkerLock lock(parts_.shared.mutex);
  for (size_t i = 0; i < refs.size(); ++i) {
    const auto& entry = entry_of(refs[i]);
    if (entry.ready) {
      for (const ObjectLocation& location : entry.details().locations)
        answers->found[i].nodes.push_back(location.node);
      answers->found[i].size = entry.size;
    } else if (!entry.owned && ask_owners) {
      ask_owner(entry, i, answers);
    }
  }
  auto all_there = [&] { return answers->waiting == 0 || parts_.shared.stopping; };
  while (answers->waiting > 0) {
    if (parts_.shared.stopping) return session_over();
    if (parts_.pump.wait_until(lock, deadline_us, all_there) == Waited::kTimeout) {
      return make_error(Code::kTimeout,
                        "timed out while asking the owners of some objects for their locations");
    }
  }
  return answers->found;
}

void Gets::ask_owner(const ObjectEntry& entry, size_t index,
                     const std::shared_ptr<Answers>& answers) {
  proto::ObjectStatusRequest request;
  request.set_object_id(entry.id.binary());
  auto answered = [answers, index](Result<proto::ObjectStatus> status) {
    --answers->waiting;
    if (!status || (status->state() != proto::ObjectStatus::READY_INLINE &&
                    status->state() != proto::ObjectStatus::READY_IN_STORE))
      return;
    for (const std::string& node : status->locations())
      answers->found[index].nodes.push_back(NodeId::from_binary(node));
    answers->found[index].size = status->size();
  };
  ++answers->waiting;
  parts_.peers.with(*entry.details().owner,
                    [request, answered](Result<std::shared_ptr<Link>> link) {
                      if (!link) return answered(link.error());
                      rpc::call(*(*link)->connection, &proto::WorkerService::Stub::GetObject,
                                request, kLocateUs, answered);
                    });
}

}  // namespace rt::worker
