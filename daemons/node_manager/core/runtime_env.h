// The little that a node-manager knows of runtime environments (JSON): limits, and whether workers
// succeeded in making them. The workers themselves make them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/proto/node_manager.pb.h"

namespace rt::node {

// Bounded because the JSON is part of every demand and of every start of a process.
inline constexpr size_t kMaxRuntimeEnvBytes = 256 * 1024;

// Returns the environment's config.setup_timeout_seconds in microseconds, 600 s if it gives none,
// and -1 if it disables the limit.
int64_t setup_timeout_us(const std::string& runtime_env);

// The outcome of making each runtime environment on this node, for people. The last worker that
// made an environment, or failed to, determines its outcome.
class RuntimeEnvTable {
 public:
  // How many environments are remembered. Beyond that the least recently recorded ones are
  // forgotten, except those in use.
  static constexpr size_t kMaxOutcomes = 1000;

  // Records an attempt that took `setup_us`. `error` says why it failed, or is empty. Environments
  // in `in_use` are not forgotten.
  void record(const std::string& runtime_env, const std::string& error, int64_t setup_us,
              const std::set<std::string>& in_use);
  // `workers` has the number of living workers per environment.
  void fill(const std::map<std::string, int>& workers, proto::RuntimeEnvsReply* reply) const;

 private:
  struct Outcome {
    std::string error;
    int64_t setup_us = 0;
    uint64_t recorded_at = 0;  // a count of record(), not a time
  };
  std::map<std::string, Outcome> outcomes_;
  std::map<uint64_t, std::string> by_recency_;  // environments, least recently recorded first
  uint64_t last_recorded_ = 0;
};

}  // namespace rt::node
