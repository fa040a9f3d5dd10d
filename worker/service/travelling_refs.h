// References that travel outside of values and arguments, as bytes that the program carries itself.
//
// Every function takes the mutex itself, where it needs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Objects;
struct Shared;

class TravellingRefs {
 public:
  // Both outlive this object.
  struct Parts {
    Shared& shared;
    Objects& objects;
  };
  explicit TravellingRefs(const Parts& parts);
  ~TravellingRefs();

  // See Worker::pack_ref() and Worker::unpack_ref().
  std::string pack(const Ref& ref) EXCLUDES(worker_mutex);
  Result<Ref> unpack(std::string_view packed) EXCLUDES(worker_mutex);

 private:
  const Parts parts_;
  // References that were packed. Nobody knows who has the bytes, so each counts until this process
  // ends.
  std::vector<Ref> pinned_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
