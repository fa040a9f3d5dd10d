#include "daemons/node_manager/core/admission_desk.h"

#include <fmt/core.h>

#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

AdmissionDesk::AdmissionDesk(const NodeCore& core, std::string head)
    : core_(core), head_(std::move(head)) {}

AdmissionDesk::~AdmissionDesk() = default;

Result<AdmissionDesk::Entry> AdmissionDesk::ask(const Applicant* applicant) {
  const auto refuse = [](const char* why) { return make_error(Code::kInvalid, why); };
  if (!applicant || stopped_) return refuse("the node-manager stops");
  if (!applicant->is_local)
    return refuse(
        "workers and drivers can register only over the Unix socket of their own node's "
        "node-manager");
  if (driver_jobs_.asks(applicant->owner) || !applicant->process.is_nil())
    return refuse("this connection has registered a process already");
  if (open_) return Entry::kGoesOn;
  if (waiting_ >= kMostWaiting)
    return refuse("too many processes wait for this node to join its cluster");
  ++waiting_;
  return Entry::kWaits;
}

Status AdmissionDesk::admit_worker(const WorkerId& id) const {
  if (id.is_nil()) return make_error(Code::kInvalid, "RegisterWorker with a malformed worker id");
  const Worker* known = core_.view().worker(id);
  if (known && known->connected)
    return make_error(Code::kAlreadyExists, "this worker is connected already");
  return {};
}

// ---- drivers

Result<AdmissionDesk::Driver> AdmissionDesk::admit_driver(OwnerId driver, const JobId& job,
                                                          bool head_is_there) {
  if (!job.is_nil()) return Driver::kJoins;
  if (!head_is_there)
    return make_error(
        Code::kUnavailable,
        fmt::format("the head at {} cannot be reached at the moment; try again", head_));
  driver_jobs_.ask(driver);
  return Driver::kNeedsJob;
}

AdmissionDesk::Answer AdmissionDesk::head_answered(OwnerId driver,
                                                   const Result<proto::AddJobReply>& begun) {
  const JobId job = begun ? JobId::from_binary(begun->job_id()) : JobId::nil();
  const JobId abandoned = driver_jobs_.answered(driver, job);
  if (!begun) return {.refusal = begun.error()};
  if (job.is_nil())
    return {.refusal = make_error(Code::kProtocol, "the head has begun a job without an id")};
  if (!abandoned.is_nil()) return {.finish = abandoned};
  begun_[driver] = job;
  return {.join = job};
}

void AdmissionDesk::driver_joined(OwnerId driver, const proto::JobInfo& job) {
  begun_.erase(driver);
  driver_jobs_.joined(driver, job);
}

JobId AdmissionDesk::driver_refused(OwnerId driver) {
  const auto begun = begun_.extract(driver);
  return begun.empty() ? JobId::nil() : begun.mapped();
}

JobId AdmissionDesk::left(OwnerId owner) {
  const JobId joined = driver_jobs_.left(owner);
  return joined.is_nil() ? driver_refused(owner) : joined;
}

}  // namespace rt::node
