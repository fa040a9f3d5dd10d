// Samples as people and their tools read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

// Samples of one process, with what it is called: "worker 4242 (Counter)".
struct NamedSamples {
  std::string title;
  proto::StackSamples samples;
};
using AllSamples = std::vector<NamedSamples>;

// "function (file:line)", or "function (library)".
std::string frame_text(const proto::SampledFrame& frame);
std::string thread_text(
    const proto::SampledThread& thread);  // "ray-io (4711)"; "thread (4711)" when nobody named it

// What this software's own threads in workers and drivers ("ray-io", "ray-flush", ...) spent
// asleep: they wait all the time, for the program.
void leave_out_idle_service(AllSamples* all);

// Each thread's stack, innermost first, of all processes.
std::string stacks_text(const AllSamples& all);
std::string folded(const AllSamples& all);  // "process;thread;outermost;...;innermost COUNT" lines
std::string speedscope(const AllSamples& all);  // its JSON file format, one profile a thread
std::string flamegraph(
    const AllSamples& all,
    const std::string& title);  // an SVG with its own script, nothing loaded from elsewhere
std::string profile_text(
    const AllSamples& all);  // functions by their own time, and the tree of calls

// kInvalid names the formats.
Result<std::string> render(const AllSamples& all, const std::string& format,
                           const std::string& title);

}  // namespace rt::profile
