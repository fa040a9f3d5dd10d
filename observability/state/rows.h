// Makes the rows of the state API from the answers of the head, the node-managers and the
// processes. A row has every column of its resource (columns.h); unknown values are null. Pure
// functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/json_members.h"
#include "common/proto/common.pb.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "observability/state/filter.h"

namespace rt::state {

using Json = nlohmann::ordered_json;

Json actor_row(const proto::ActorInfo& actor);
Json node_row(const proto::Node& node);
// Why a node is dead, or what keeps a living one from working; null for a healthy node.
Json node_message(const proto::Node& node);
Json worker_row(const proto::ProcessInfo& process, const proto::Node& node);
Json runtime_env_row(const proto::RuntimeEnvInfo& env, const proto::Node& node);
Json object_row(const proto::ObjectRecord& object, const proto::ObjectRecords& process);
// One row for each job, submitted ones first. A submitted job and the last of its drivers share a
// row; its earlier drivers have rows of their own. Both lists have to be of one moment, as only a
// snapshot is: between two questions a job may begin or end.
std::vector<Json> job_rows(const proto::GetSnapshotReply& jobs);

// The state API's name for a TaskRecord::State.
const char* task_state_name(proto::TaskRecord::State state);
// `text`, or null if it is empty.
Json optional_text(const std::string& text);
// A binary id in hex, or null if it is empty.
Json optional_hex(const std::string& bytes);

// The value in a column of a row, as filters compare it.
Field field_of(const Json& row, const Resource& resource, int column);
// The row in the order of the resource's columns; detail columns only with `detail`.
Json shown(Json row, const Resource& resource, bool detail);

}  // namespace rt::state
