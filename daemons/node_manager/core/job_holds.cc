#include "daemons/node_manager/core/job_holds.h"

#include <fmt/core.h>

namespace rt::node {

JobHolds::JobHolds(const NodeIdentity& me, Rooms& rooms) : me_(me), rooms_(rooms) {}

JobHolds::~JobHolds() = default;

Result<std::vector<std::string>> JobHolds::hold(const std::string& submission_id,
                                                const ResourceSet& resources) {
  if (holds_.contains(submission_id))
    return make_error(Code::kAlreadyExists,
                      fmt::format("job {} is running already", submission_id));
  if (!rooms_.node().fits(resources)) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} has no free {}", me_.ip, resources.to_string()));
  }
  Hold& hold = holds_[submission_id];
  hold.resources = resources;
  hold.gpus = rooms_.change(RoomKey()).take(resources);
  return rooms_.node().gpus().names(hold.gpus);
}

bool JobHolds::release(const std::string& submission_id) {
  auto hold = holds_.extract(submission_id);
  if (hold.empty()) return false;
  rooms_.change(RoomKey()).give_back(hold.mapped().resources, hold.mapped().gpus);
  return true;
}

}  // namespace rt::node
