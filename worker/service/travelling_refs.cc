#include "worker/service/travelling_refs.h"

#include "worker/service/objects.h"
#include "worker/service/shared.h"

namespace rt::worker {

TravellingRefs::TravellingRefs(const Parts& parts) : parts_(parts) {}

TravellingRefs::~TravellingRefs() = default;

std::string TravellingRefs::pack(const Ref& ref) {
  WorkerLock lock(parts_.shared.mutex);
  pinned_.emplace(ref.id(), ref);
  return parts_.shared.self.cluster_id() + parts_.objects.pack({&ref, 1});
}

Result<Ref> TravellingRefs::unpack(std::string_view packed) {
  // Ids do not identify the cluster: the first driver's objects have the same ids in every
  // cluster.
  if (packed.size() < ClusterId::kSize)
    return make_error(Code::kInvalid, "the bytes are not a pickled ObjectRef");
  if (!packed.starts_with(parts_.shared.self.cluster_id()))
    return make_error(Code::kOwnerDied,
                      "this ObjectRef was pickled in another cluster than the one this process is "
                      "connected to: its owner is not here. Make the object again.");
  packed.remove_prefix(ClusterId::kSize);
  auto unpacked = unpack_refs(as_bytes(packed));
  if (!unpacked) return unpacked.error();
  if (unpacked->size() != 1)
    return make_error(Code::kInvalid, "the bytes are not a pickled ObjectRef");
  WorkerLock lock(parts_.shared.mutex);
  std::vector<Ref> refs = parts_.objects.take_refs(as_bytes(packed), false, true);
  parts_.shared.loop.flush_all();
  return refs.front();
}

}  // namespace rt::worker
