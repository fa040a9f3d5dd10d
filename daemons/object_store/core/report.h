// The words and figures in which StoreCore tells people of its room.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "daemons/object_store/core/allocator.h"
#include "daemons/object_store/core/extents.h"
#include "daemons/object_store/core/pages.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

// "57.2 MiB"
std::string human(int64_t bytes);
// "the driver of job 01000000 (pid 7) 57.2 MiB in 1 objects"
std::string describe(const Holder& holder);

// Refuses an object that is larger than the store.
Error never_fits(int64_t wanted_bytes, int64_t capacity);
// Refuses a request for which there is no room, and says who holds it: `holders`, those with most
// bytes first.
Error full_error(int64_t wanted_bytes, const Allocator& allocator, const Extents& extents,
                 const Pages& pages, const std::vector<Holder>& holders);
// Refuses a request because `count` others wait for what `awaited` names: store_max_waiting, which
// is `bound`, is reached.
Error too_many_waiting(size_t count, const char* awaited, size_t bound);

// Sums up requests by process, kind and job.
class WaiterTable {
 public:
  void add(ClientId client, const WorkerId& worker, int pid, Waiter::Kind kind,
           const ObjectId& first, int64_t bytes, int64_t since_us);
  // Returns the sums with the oldest one first.
  std::vector<Waiter> sorted() const;

 private:
  std::map<std::tuple<ClientId, Waiter::Kind, JobId>, Waiter> all_;
};

}  // namespace rt::store
