// Between the runtime's errors and the API's exceptions.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "invoke.h"
#include "worker/worker.h"

namespace ray::internal {

// A failed operation of ours, as RayException.
[[noreturn]] void throw_error(const rt::Error& error);
// What is stored instead of a value, as the class of exceptions.h that fits.
[[noreturn]] void throw_stored_error(rt::Bytes inband);

// What a failed call stores.
rt::proto::ErrorValue call_error(const rt::worker::ExecutingTask& task,
                                 const rt::worker::Context& context, const CallFailure& failure);
// The name people know a function by: "Plus", "Counter::Add".
std::string display_name(const rt::proto::FunctionDescriptor& function);

}  // namespace ray::internal
