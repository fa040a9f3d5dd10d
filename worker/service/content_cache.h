// The large arguments that this process has put, by their content, so that equal ones are stored
// once. It holds no references, except to the argument that was used last, for a moment: a task
// that finishes before the next one with the same argument is submitted must not take the stored
// argument with it. It holds at most one, and not for long, because others may wait for the room.
//
// All methods are called with the worker's mutex held.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "common/net/loop.h"
#include "worker/core/ref_table.h"
#include "worker/service/content_hash.h"

namespace rt::worker {

class ContentCache {
 public:
  // Both must outlive this object.
  ContentCache(net::Loop& loop, const std::unique_ptr<RefTable>& refs) : loop_(loop), refs_(refs) {}

  // The object with this content; empty if there is none.
  Ref find(const ContentHash& content);
  void add(const ContentHash& content, const Ref& argument);
  // The object is gone.
  void forget(const ObjectId& id);
  // Gives up the room of the argument that was used last.
  void let_go() { recent_.reset(); }

 private:
  struct HashOfHash {
    size_t operator()(const ContentHash& k) const { return k.low; }
  };

  void keep(const Ref& argument);
  // Drops the argument that is kept, unless it was used a moment ago.
  void drop();

  net::Loop& loop_;
  const std::unique_ptr<RefTable>& refs_;
  std::unordered_map<ContentHash, ObjectId, HashOfHash> ids_;
  std::unordered_map<ObjectId, ContentHash> contents_;
  Ref recent_;
  int64_t recent_until_us_ = 0;
  bool timer_set_ = false;
};

}  // namespace rt::worker
