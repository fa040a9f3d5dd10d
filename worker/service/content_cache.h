// The large arguments that this process has put, by their content, so that equal ones are stored
// once. It holds no references, except to the argument that was used last, for a moment: a task
// that finishes before the next one with the same argument is submitted must not take the stored
// argument with it. It holds at most one, and not for long, because others may wait for the room.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "common/net/loop.h"
#include "worker/core/ref_table.h"
#include "worker/service/content_hash.h"
#include "worker/service/lock.h"

namespace rt::worker {

class ContentCache {
 public:
  // Both must outlive this object.
  ContentCache(net::Loop& loop, const std::unique_ptr<RefTable>& refs);
  ~ContentCache();

  // The object with this content; empty if there is none.
  Ref find(const ContentHash& content) REQUIRES(worker_mutex);
  void add(const ContentHash& content, const Ref& argument) REQUIRES(worker_mutex);
  // The object is gone.
  void forget(const ObjectId& id) REQUIRES(worker_mutex);
  // Gives up the room of the argument that was used last.
  void let_go() REQUIRES(worker_mutex) { recent_.reset(); }

 private:
  struct HashOfHash {
    size_t operator()(const ContentHash& k) const { return k.low; }
  };

  void keep(const Ref& argument) REQUIRES(worker_mutex);
  // Drops the argument that is kept, unless it was used a moment ago.
  void drop() REQUIRES(worker_mutex);

  net::Loop& loop_;
  const std::unique_ptr<RefTable>& refs_;
  std::unordered_map<ContentHash, ObjectId, HashOfHash> ids_ GUARDED_BY(worker_mutex);
  std::unordered_map<ObjectId, ContentHash> contents_ GUARDED_BY(worker_mutex);
  Ref recent_ GUARDED_BY(worker_mutex);
  int64_t recent_until_us_ GUARDED_BY(worker_mutex) = 0;
  bool timer_set_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
