// Packs references into bytes that the program itself carries to another process, and unpacks them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

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
  // The references that were packed. Nobody knows who has the bytes, so each counts as long as this
  // object lives.
  std::unordered_map<ObjectId, Ref> pinned_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
