// What a node-manager must know of a runtime environment (JSON); making it is the worker's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rt::node {

inline constexpr size_t kMaxRuntimeEnvBytes = 256 * 1024;   // it travels with every demand and start of a process

// config.setup_timeout_seconds in us; 600 s when not given, -1: no limit.
int64_t setup_timeout_us(const std::string& runtime_env);

}  // namespace rt::node
