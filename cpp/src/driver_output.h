// Workers' output on the driver's terminal: "(name pid=12) text".
#pragma once

#include <functional>
#include <vector>

#include "worker/worker.h"

namespace ray::internal {

// Returns what prints workers' output, for rt::worker::Options::log_sink.
std::function<void(const std::vector<rt::worker::DriverLine>&)> worker_output_printer();

}  // namespace ray::internal
