// The calls of the program that wait for values or ask about them: ray.get() waits in wait_all(),
// ray.wait() in wait_some(). How a value comes here is the business of Objects.
//
// Every function takes the mutex itself, where it needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Objects;
class PeerLinks;
class Pump;
struct ObjectEntry;
struct Shared;

class Gets {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    PeerLinks& peers;
    Objects& objects;
  };
  explicit Gets(const Parts& parts) : parts_(parts) {}

  // These are Worker's functions of the same names.
  Waited wait_all(std::span<const Ref> refs, int64_t deadline_us, int64_t since_us)
      EXCLUDES(worker_mutex);
  Waited wait_some(std::span<const Ref> refs, size_t count, int64_t deadline_us, int64_t since_us,
                   bool fetch_local, std::vector<bool>* ready) EXCLUDES(worker_mutex);
  size_t first_failed(std::span<const Ref> refs, int64_t since_us) EXCLUDES(worker_mutex);
  void errors_seen(std::span<const Ref> refs);
  bool on_ready(const Ref& ref, std::function<void()> callback) EXCLUDES(worker_mutex);
  Result<std::vector<Worker::Where>> locate(std::span<const Ref> refs, bool ask_owners,
                                            int64_t deadline_us) EXCLUDES(worker_mutex);

 private:
  struct Answers;

  // Whether a get that lasts lends its CPU: a value may have to be made first.
  bool any_awaited(std::span<const Ref> refs) const;
  void ask_owner(const ObjectEntry& entry, size_t index, const std::shared_ptr<Answers>& answers)
      REQUIRES(worker_mutex);

  const Parts parts_;
};

}  // namespace rt::worker
