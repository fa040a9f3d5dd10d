// Small types of the head's core.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"

namespace rt::head {

using ConnId = uint64_t;  // one connection, numbered by the service, never reused; 0: none

// A node and the connection to it at the time of the decision.
struct NodeLink {
  NodeId node;
  ConnId conn = 0;
};

// For requests whose answer waits for a commit. Called exactly once, perhaps before the method
// returns; the request it answers may be gone afterwards.
template <class T>
using Reply = std::function<void(Result<T>)>;

struct HeadOptions {
  Settings settings;
  std::string session_name;
  std::string head_address;  // ip:port that jobs and nodes reach the head at
  std::string cluster_id;    // binary; empty: the recorded one, or a new one
  uint64_t seed = 1;         // of ids the core makes
};

}  // namespace rt::head
