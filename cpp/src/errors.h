// Converts between the runtime's errors and the API's exceptions.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "invoke.h"
#include "worker/worker.h"

namespace ray::internal {

// Throws a failed operation of the worker library as RayException.
[[noreturn]] void throw_error(const rt::Error& error);
// Throws the encoded error that is stored instead of a value, as the class of exceptions.h that
// fits.
[[noreturn]] void throw_stored_error(rt::Bytes inband);

// The error that a failed call stores as its result.
rt::proto::ErrorValue call_error(const rt::worker::ExecutingTask& task,
                                 const rt::worker::Context& context, const CallFailure& failure);
// The name of a function in messages: "Plus", "Counter::Add".
std::string display_name(const rt::proto::FunctionDescriptor& function);

}  // namespace ray::internal
