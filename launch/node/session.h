// The session directory of a node, and the files beside it by which others find the node.
#pragma once

#include <string>

#include "common/base/status.h"
#include "launch/node/launch.h"

namespace rt::launch {

struct Session {
  std::string root, directory, name;
};
// Makes a directory below the root of sessions, or checks what is there: kIo unless it is a
// directory of this user to which no other can write, so that its files can be trusted and get
// secrets.
Status make_own_directory(const std::string& path);
// The same check of a directory that may be missing.
Status check_own_directory(const std::string& path);
// Refuses a root that is no absolute path or not UTF-8; temp_dir: the option, "" for the default.
Status check_temp_root(const std::string& temp_dir);

// Makes <root>/session_<date>_<pid>/{logs,sockets} and checks that files can be written there. A
// read-only or full place is one error (kIo, kOutOfDisk) with the remedy, and nothing stays behind.
Result<Session> make_session(const std::string& temp_dir);
void remove_session(const Session& session);
Session session_of(const StartedNode& node);

// Writes the record of a node whose daemons are about to be spawned: its processes are those that
// hold its StarterLine.
Status record_starting_node(const StartedNode& node);
// Writes the node's record, node_<id>.json, which `rayctl stop` reads, and the address file.
Status record_node(const Session& session, const StartedNode& node);
// Writes head_address into the session of a head that ends with this process, for
// running_cluster(). Errors are ignored.
void record_private_head(const Session& session, const StartedNode& node);
// Points the link <root>/session_latest to the session, as a convenience for people. Errors are
// ignored.
void point_latest(const Session& session);

}  // namespace rt::launch
