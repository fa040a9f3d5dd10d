// Rows of the state API, made of what the head, the node-managers and the processes say. Every
// column of columns.h is there; what is not known is null.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "common/state/filter.h"

namespace rt::state {

using Json = nlohmann::ordered_json;

Json actor_row(const proto::ActorInfo& actor);
Json node_row(const proto::Node& node);
Json worker_row(const proto::ProcessInfo& process, const proto::Node& node);
Json runtime_env_row(const proto::RuntimeEnvInfo& env, const proto::Node& node);
Json object_row(const proto::ObjectRecord& object, const proto::ObjectRecords& process);
// Jobs of drivers, and those submitted; a submitted job and its driver are one row.
std::vector<Json> job_rows(const proto::GetJobsReply& drivers,
                           const proto::SubmittedJobsReply& submitted);

// The state API's name of TaskRecord::State.
const char* task_state_name(proto::TaskRecord::State state);
// A text that may be absent: null for "".
Json optional_text(const std::string& text);
// An id in hex; null for "".
Json optional_hex(const std::string& bytes);

// The text in a column of a row: "" where there is no such column, or no text in it.
std::string text_of(const Json& row, const char* column);

// A value of a row as filters see it.
Field field_of(const Json& row, const Resource& resource, int column);
// The row's columns, those of the detail only if wanted.
Json shown(Json row, const Resource& resource, bool detail);

}  // namespace rt::state
