// Small types shared by the head's core.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/settings.h"

namespace rt::head {

// Identifies one connection. The service numbers them and never reuses a number; 0 means none.
using ConnId = uint64_t;

// A node and the connection it had when the decision was made.
struct NodeLink {
  NodeId node;
  ConnId conn = 0;
};

// Answers a request whose answer waits for a commit. The callee calls it exactly once, possibly
// before the method returns. The request message may be destroyed afterwards.
template <class T>
using Reply = std::function<void(Result<T>)>;

struct HeadOptions {
  Settings settings;
  std::string session_name;
  std::string head_address;  // The ip:port at which jobs and nodes reach the head.
  // The bytes of the id, not its hexadecimal text. When it is empty, the core uses the recorded id,
  // or makes one for a new cluster.
  std::string cluster_id;
  // Seeds the generator of the ids that the core makes.
  uint64_t seed = 1;
};

}  // namespace rt::head
