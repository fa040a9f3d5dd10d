#include "observability/profile/render.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json_text.h"
#include "common/base/utf8.h"

namespace rt::profile {
namespace {

using Json = nlohmann::json;

int64_t sample_count(const proto::SampledStack& stack) { return stack.on_cpu() + stack.off_cpu(); }

// Replaces the characters that separate frames and lines in folded stacks.
std::string one_word(std::string text) {
  for (char& c : text) {
    if (c == ';') c = ':';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

void append_notes(const NamedSamples& process, const char* prefix, std::string* out) {
  for (const std::string& note : process.samples.notes())
    *out += fmt::format("{}{}: {}\n", prefix, process.title, printable(note));
}

std::string dumped(const Json& json) { return json_text(json) + "\n"; }

// Whether a thread belongs to the runtime, not to the user's program.
bool is_service(const proto::StackSamples& samples, const proto::SampledThread& thread) {
  // The unnamed threads of a daemon inherit its name, which also begins with "ray-". They are what
  // the user wants to see in a profile of the daemon.
  auto is_named_after_process = [&](const auto& other) {
    return other.tid() == samples.pid() && other.name() == thread.name();
  };
  return thread.name().starts_with("ray-") &&
         std::ranges::none_of(samples.threads(), is_named_after_process);
}

std::string raw_frame_text(const proto::SampledFrame& frame) {
  if (!frame.file().empty()) {
    if (frame.line() <= 0) return fmt::format("{} ({})", frame.function(), frame.file());
    // Paths of native source files are long, and their last part is enough.
    std::string file =
        frame.native() ? frame.file().substr(frame.file().rfind('/') + 1) : frame.file();
    return fmt::format("{} ({}:{})", frame.function(), file, frame.line());
  }
  return frame.module().empty() || frame.function() == "[" + frame.module() + "]"
             ? frame.function()
             : fmt::format("{} ({})", frame.function(), frame.module());
}

// A node of the tree of calls; numbers are samples.
struct Node {
  int64_t total = 0, self = 0;
  std::map<std::string, Node> callees;
};

constexpr size_t kTopFunctions = 30;
constexpr double kLeastShare = 0.005;  // Smaller branches of the tree are not shown.

void append_tree(const std::string& name, const Node& node, int64_t all, int depth,
                 std::string* out) {
  if (static_cast<double>(node.total) < kLeastShare * static_cast<double>(all)) return;
  *out += fmt::format("{:6.1f}% {}{}\n",
                      100.0 * static_cast<double>(node.total) / static_cast<double>(all),
                      std::string(static_cast<size_t>(depth), ' '), name);
  std::vector<const std::pair<const std::string, Node>*> sorted;
  for (const auto& callee : node.callees) sorted.push_back(&callee);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto* a, auto* b) { return a->second.total > b->second.total; });
  for (const auto* callee : sorted) append_tree(callee->first, callee->second, all, depth + 1, out);
}

}  // namespace

std::string thread_text(const proto::SampledThread& thread) {
  return fmt::format("{} ({})", thread.name().empty() ? "thread" : printable(thread.name()),
                     thread.tid());
}

std::string frame_text(const proto::SampledFrame& frame) {
  return printable(raw_frame_text(frame));
}

void leave_out_idle_service(AllSamples* all) {
  for (auto& process : *all) {
    auto& stacks = *process.samples.mutable_stacks();
    for (auto& stack : stacks) {
      if (is_service(process.samples, process.samples.threads(static_cast<int>(stack.thread()))))
        stack.set_off_cpu(0);
    }
    stacks.erase(std::remove_if(stacks.begin(), stacks.end(),
                                [](const auto& stack) { return sample_count(stack) == 0; }),
                 stacks.end());
  }
}

std::string stacks_text(const AllSamples& all) {
  std::string out;
  for (const auto& process : all) {
    const auto& samples = process.samples;
    if (!out.empty()) out += '\n';
    out += fmt::format("Process {}: {}{}{}\n", samples.pid(), process.title,
                       samples.runtime().empty() ? "" : ", ", printable(samples.runtime()));
    for (const auto& stack : samples.stacks()) {
      const auto& thread = samples.threads(static_cast<int>(stack.thread()));
      out += fmt::format(
          "Thread {} ({}){}\n", thread.tid(), stack.on_cpu() > 0 ? "active" : "idle",
          thread.name().empty() ? "" : fmt::format(": \"{}\"", printable(thread.name())));
      for (int i = stack.frames_size(); i-- > 0;)
        out +=
            fmt::format("    {}\n", frame_text(samples.frames(static_cast<int>(stack.frames(i)))));
    }
    append_notes(process, "Note: ", &out);
  }
  return out;
}

std::string folded(const AllSamples& all) {
  std::string out;
  for (const auto& process : all) {
    for (const auto& stack : process.samples.stacks()) {
      out += one_word(process.title) + ";" +
             one_word(thread_text(process.samples.threads(static_cast<int>(stack.thread()))));
      for (uint32_t id : stack.frames())
        out += ";" + one_word(frame_text(process.samples.frames(static_cast<int>(id))));
      out += fmt::format(" {}\n", sample_count(stack));
    }
  }
  return out;
}

std::string speedscope(const AllSamples& all) {
  Json frames = Json::array(), profiles = Json::array();
  for (const auto& process : all) {
    const auto base = frames.size();
    const double seconds = static_cast<double>(process.samples.period_us()) / 1e6;
    for (const auto& frame : process.samples.frames()) {
      Json entry = {{"name", frame.native() && !frame.module().empty() && frame.file().empty()
                                 ? frame_text(frame)
                                 : frame.function()}};
      if (!frame.file().empty()) entry["file"] = frame.file();
      if (frame.line() > 0) entry["line"] = frame.line();
      frames.push_back(std::move(entry));
    }
    for (int thread = 0; thread < process.samples.threads_size(); ++thread) {
      Json stacks = Json::array(), weights = Json::array();
      double total = 0;
      for (const auto& stack : process.samples.stacks()) {
        if (static_cast<int>(stack.thread()) != thread) continue;
        Json ids = Json::array();
        for (uint32_t id : stack.frames()) ids.push_back(base + id);
        stacks.push_back(std::move(ids));
        weights.push_back(static_cast<double>(sample_count(stack)) * seconds);
        total += static_cast<double>(sample_count(stack)) * seconds;
      }
      if (stacks.empty()) continue;
      profiles.push_back(
          {{"type", "sampled"},
           {"name", process.title + ", " + thread_text(process.samples.threads(thread))},
           {"unit", "seconds"},
           {"startValue", 0},
           {"endValue", total},
           {"samples", std::move(stacks)},
           {"weights", std::move(weights)}});
    }
  }
  return dumped({{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                 {"shared", {{"frames", std::move(frames)}}},
                 {"profiles", std::move(profiles)},
                 {"activeProfileIndex", 0}});
}

std::string profile_text(const AllSamples& all) {
  struct Cost {
    int64_t self = 0, total = 0;
  };
  std::map<std::string, Cost> functions;
  Node root;
  std::string out;
  for (const auto& process : all) {
    append_notes(process, "Note: ", &out);
    for (const auto& stack : process.samples.stacks()) {
      const int64_t n = sample_count(stack);
      Node* node = &root;
      root.total += n;
      // The set lets a recursive function count once per stack.
      std::set<std::string> seen;
      std::vector<std::string> path = {
          process.title, thread_text(process.samples.threads(static_cast<int>(stack.thread())))};
      for (uint32_t id : stack.frames())
        path.push_back(frame_text(process.samples.frames(static_cast<int>(id))));
      for (size_t i = 0; i < path.size(); ++i) {
        node = &node->callees[path[i]];
        node->total += n;
        if (i >= 2 && seen.insert(path[i]).second) functions[path[i]].total += n;
      }
      node->self += n;
      if (path.size() > 2) functions[path.back()].self += n;
    }
  }
  if (root.total == 0) return out + "no samples: no thread was in the state that --mode selects\n";
  std::vector<std::pair<std::string, Cost>> sorted(functions.begin(), functions.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.self > b.second.self; });
  auto share = [&](int64_t n) {
    return 100.0 * static_cast<double>(n) / static_cast<double>(root.total);
  };
  out += fmt::format("{} samples\n\n   self   total  function\n", root.total);
  for (size_t i = 0; i < sorted.size() && i < kTopFunctions; ++i)
    out += fmt::format("{:6.1f}% {:6.1f}%  {}\n", share(sorted[i].second.self),
                       share(sorted[i].second.total), sorted[i].first);
  out += "\n  total  calls\n";
  for (const auto& [name, node] : root.callees) append_tree(name, node, root.total, 0, &out);
  return out;
}

Result<std::string> render(const AllSamples& all, const std::string& format,
                           const std::string& title) {
  if (format == "flamegraph") return flamegraph(all, title);
  if (format == "speedscope") return speedscope(all);
  if (format == "folded" || format == "raw") return folded(all);
  if (format == "text") return profile_text(all);
  return make_error(Code::kInvalid,
                    "unknown format '" + format + "': use flamegraph, speedscope, folded or text");
}

}  // namespace rt::profile
