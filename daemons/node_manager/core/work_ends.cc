#include "daemons/node_manager/core/work_ends.h"

namespace rt::node {

void WorkEnds::work_ended(Worker& worker, Now now) {
  if (worker.state == WorkerState::kLeased) {
    node_.leases.end(worker.lease, false, now);
  } else if (worker.state == WorkerState::kActor) {
    node_.workers.release_held(worker);
    node_.actors.begin_end(worker);
  }
}

void WorkEnds::process_ended(const RoomKey& room, const proto::ExitInfo& info) {
  node_.bundle_desk.vacated(room);
  node_.actors.ended(WorkerId::from_binary(info.worker_id()), info);
}

void WorkEnds::cannot_start(const WorkerKind& kind, const std::string& why, Code code, Now now) {
  node_.leases.fail(kind, why, code, now);
  proto::ExitInfo info;
  info.set_message(why);
  info.set_node_id(node_.me.id.binary());
  info.set_ip(node_.me.ip);
  if (code == Code::kRuntimeEnvSetup) {
    // The head must not try again, just as after a constructor that raised an exception: another
    // attempt would end the same way.
    info.set_kind(proto::ExitInfo::INIT_FAILED);
    info.set_exit_code(static_cast<int>(code));
  }
  node_.actors.fail_waiting([&](const HostedActor& actor) { return actor.kind == kind; }, info,
                            false);
}

}  // namespace rt::node
