// Collects views whose last reference is gone until the daemon is told. Lock-free, because the
// last reference may go in any thread, inside a garbage collector, at interpreter exit, or after
// the client itself.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemons/object_store/client/mapping.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class ReleaseQueue;

// One pin at the daemon, shared by everything in this process that refers to the object. Or the
// room that a task holds as long as it needs its arguments.
struct View {
  ObjectId id;
  Ticket ticket = 0;                    // Names a task's arguments; 0 for a pin.
  std::shared_ptr<Mapping> mapping;     // Keeps the memory mapped.
  std::shared_ptr<ReleaseQueue> queue;  // Outlives the client.
  View* next = nullptr;
};

class ReleaseQueue {
 public:
  // `wake()` must lead to a drain. Any thread may call it, also after the client has ended.
  explicit ReleaseQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~ReleaseQueue() { delete_all(take()); }

  static Keepalive make_keepalive(View* view) {
    return std::shared_ptr<const void>(view, [](const View* dropped) {
      auto* view = const_cast<View*>(dropped);
      std::shared_ptr<ReleaseQueue> queue = std::move(view->queue);
      queue->push(view);
    });
  }
  bool is_empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }
  View* take() { return head_.exchange(nullptr, std::memory_order_acq_rel); }
  // Deletes all views, also those that come later: the connection's end has released their pins.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    delete_all(take());
  }

 private:
  void push(View* view) {
    view->next = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(view->next, view, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {}
    if (closed_.load(std::memory_order_seq_cst)) {
      delete_all(take());
    } else {
      wake_();
    }
  }
  static void delete_all(View* view) {
    while (view) delete std::exchange(view, view->next);
  }

  const std::function<void()> wake_;
  std::atomic<View*> head_{nullptr};
  std::atomic<bool> closed_{false};
};

}  // namespace rt::store
