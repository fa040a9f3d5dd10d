// Renders samples in the formats that people and tools read. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

// The samples of one process and its title, for example "worker 4242 (Counter)".
struct NamedSamples {
  std::string title;
  proto::StackSamples samples;
};
using AllSamples = std::vector<NamedSamples>;

// "function (file:line)", or "function (library)".
std::string frame_text(const proto::SampledFrame& frame);
// "ray-io (4711)", or "thread (4711)" for a thread without a name.
std::string thread_text(const proto::SampledThread& thread);

// Removes the time that the runtime's own threads in workers and drivers ("ray-io", "ray-flush",
// ...) spent asleep. They wait for the program nearly all the time, which would dominate a profile.
void leave_out_idle_service(AllSamples* all);

// The stacks of all threads of all processes, the innermost frame first.
std::string stacks_text(const AllSamples& all);
// Folded stacks: lines "process;thread;outermost;...;innermost COUNT".
std::string folded(const AllSamples& all);
// The JSON file format of speedscope, with one profile for each thread.
std::string speedscope(const AllSamples& all);
// An SVG that contains its script and loads nothing from elsewhere.
std::string flamegraph(const AllSamples& all, const std::string& title);
// Text: the functions with the most time of their own, and the tree of calls.
std::string profile_text(const AllSamples& all);

// Renders in the format "flamegraph", "speedscope", "folded" (or "raw") or "text". The error
// kInvalid for any other format names them.
Result<std::string> render(const AllSamples& all, const std::string& format,
                           const std::string& title);

}  // namespace rt::profile
