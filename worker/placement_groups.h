// Placement groups, as language bindings see them. Free functions beside Worker, because no other
// part of it needs them.
//
// Threads: every function may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/worker.h"

namespace rt::worker {

// Asks the head to create a group and returns its id. The binding fills in name, namespace ("":
// that of this process), strategy, bundles and options; ids, owner and times are set here. A group
// without a name is sent without waiting, and what becomes of it shows in group_info(): one that
// the head refuses is REMOVED with the reason, which a driver prints as well. A group with a name
// is registered when this returns. It fails with kAlreadyExists when the name is taken, with
// kInvalid for a specification that the head refuses, and with kUnavailable when the head cannot
// be reached for head_reconnect_timeout_ms.
Result<GroupId> create_group(Worker& worker, proto::GroupSpec spec);
// Returns when the removal has been sent, for a group that cannot outlive this process, and else
// when no later head can have the group again. What runs in it is killed a moment later.
Status remove_group(Worker& worker, const GroupId& id);
// Waits until the group is CREATED. kFailed: it has been removed, or the head does not know it and
// its creator has not registered it within about a second. A deadline in the past means to look.
Waited wait_group(Worker& worker, const GroupId& id, int64_t deadline_us);
// Asks the head. Fails with kNotFound for a group that neither the head nor this process knows.
Result<proto::GroupInfo> group_info(Worker& worker, const GroupId& id);
Result<proto::GroupInfo> find_group(Worker& worker, const std::string& name,
                                    const std::string& ray_namespace);
Result<std::vector<proto::GroupInfo>> list_groups(Worker& worker);

// The group and bundle in which the calling thread's task (or the actor of this process) runs, and
// whether it captures what it creates. A nil id: it runs in none, or the process is a driver.
struct CurrentGroup {
  GroupId id;
  int bundle_index = -1;
  bool captures_children = false;
};
CurrentGroup current_group(const Worker& worker);

}  // namespace rt::worker
