// What a node-manager must know of a runtime environment (JSON); making it is the worker's
// business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/proto/node_manager.pb.h"

namespace rt::node {

inline constexpr size_t kMaxRuntimeEnvBytes =
    256 * 1024;  // it travels with every demand and start of a process

// config.setup_timeout_seconds in us; 600 s when not given, -1: no limit.
int64_t setup_timeout_us(const std::string& runtime_env);

// How making each runtime environment ended here, for people. A record set: what the last worker
// said counts.
class RuntimeEnvTable {
 public:
  // Beyond these the ones that were made or tried longest ago are forgotten, but none that is
  // `in_use`.
  static constexpr size_t kMost = 1000;

  // `error`: why it could not be made; empty: it was. `setup_us`: how long that took.
  void record(const std::string& runtime_env, const std::string& error, int64_t setup_us,
              const std::set<std::string>& in_use);
  // `workers`: how many live, by environment.
  void fill(const std::map<std::string, int>& workers, proto::RuntimeEnvsReply* reply) const;

 private:
  struct Outcome {
    std::string error;
    int64_t setup_us = 0;
    uint64_t turn = 0;  // of the last word about it
  };
  std::map<std::string, Outcome> outcomes_;
  std::map<uint64_t, std::string> by_turn_;
  uint64_t turn_ = 0;
};

}  // namespace rt::node
