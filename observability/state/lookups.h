// Single questions to the head that several parts of the state API have.
#pragma once

#include <optional>
#include <string>

#include "common/proto/head.pb.h"
#include "observability/state/sources.h"

namespace rt::state {

// A value of the head's key-value store; nothing if there is no such key.
Result<std::optional<std::string>> kv_value(Sources& sources, const char* ns,
                                            const std::string& key);
// Asks the head for the actor with this id, given in hex.
Result<proto::GetActorReply> actor_info(Sources& sources, const std::string& actor_hex);
// All drivers and submitted jobs, for job_rows().
Result<proto::GetSnapshotReply> all_jobs(Sources& sources);
// Where the process of an actor or task is reached.
rpc::Target target_of(const proto::WorkerAddress& address);

}  // namespace rt::state
