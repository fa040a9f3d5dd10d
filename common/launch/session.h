// The session directory of a node and what is written beside it for others to find.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/launch/launch.h"

namespace rt::launch {

struct Session {
  std::string root, directory, name;
};
// Makes <root>/session_<date>_<pid>/{logs,sockets} and checks that files can be written there: a
// read-only or full place is one error (kIo, kOutOfDisk) with the remedy, and nothing stays behind.
Result<Session> make_session(const std::string& temp_dir);
void remove_session(const Session& session);
Session session_of(const StartedNode& node);

// The record `stop` reads (node_<id>.json), and for a head also the address file.
Status record_node(const Session& session, const StartedNode& node);
// What running_cluster() reads of a head that ends with this process: head_address in its session;
// best effort.
void record_private_head(const Session& session, const StartedNode& node);
// Points <root>/session_latest here; best effort, it is a convenience for people.
void point_latest(const Session& session);

}  // namespace rt::launch
