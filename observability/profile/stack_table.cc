#include "observability/profile/stack_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "observability/profile/sampler.h"

namespace rt::profile {
namespace {

constexpr uint32_t kEvaluator = UINT32_MAX;  // Stands for the frame that language frames replace.
constexpr const char* kOther = "[further stacks: more different ones than are kept]";

template <class T>
void append(std::string* key, const T& value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

StackTable::StackTable(LanguageSymbols* symbols, Unwinder* unwinder)
    : symbols_(symbols), unwinder_(unwinder) {}

bool StackTable::full() const { return stacks_.size() >= kMaxStacks; }

uint32_t StackTable::frame(const proto::SampledFrame& frame) {
  std::string key =
      fmt::format("{}\n{}\n{}\n{}", frame.function(), frame.file(), frame.line(), frame.module());
  auto [it, is_new] = frame_ids_.try_emplace(std::move(key), static_cast<uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return it->second;
}

size_t StackTable::add(uint32_t thread, const Capture& capture) {
  Stack stack;
  stack.thread = thread;
  if (unwinder_) {
    unwinder_->unwind(capture, &pcs_);
    stack.pcs = pcs_;
  }
  if (symbols_ && capture.language_frames > 0) {
    symbols_->resolve(std::span(capture.language, capture.language_frames), &names_);
    for (size_t i = 0; i < names_.size(); ++i) {
      proto::SampledFrame named;
      named.set_function(names_[i].function);
      named.set_file(names_[i].file);
      named.set_line(names_[i].line);
      stack.language.emplace_back(frame(named), capture.language[i].entry);
    }
  }
  std::string key;
  append(&key, thread);
  for (uint64_t pc : stack.pcs) append(&key, pc);
  append(&key, uint64_t{0});
  for (const auto& [id, entry] : stack.language) append(&key, id * 2 + (entry ? 1 : 0));
  auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  if (full()) {
    auto [other, is_new] = known_.try_emplace(kOther, stacks_.size());
    if (is_new) {
      proto::SampledFrame named;
      named.set_function(kOther);
      stacks_.push_back({thread, {}, {{frame(named), true}}});
    }
    return other->second;
  }
  stacks_.push_back(std::move(stack));
  known_.emplace(std::move(key), stacks_.size() - 1);
  return stacks_.size() - 1;
}

void StackTable::count(size_t stack, bool on_cpu, int64_t looks) {
  (on_cpu ? stacks_[stack].on_cpu : stacks_[stack].off_cpu) += looks;
}

uint32_t StackTable::native_frame(uint64_t pc, std::string_view evaluator) {
  auto [it, is_new] = native_ids_.try_emplace(pc, 0);
  if (!is_new) return it->second;
  NativeName name = unwinder_->name(pc);
  // The compiler may have split off a part of the function, as NAME.cold.
  bool evaluates = !evaluator.empty() && (name.function == evaluator ||
                                          name.function.starts_with(std::string(evaluator) + "."));
  if (evaluates) return it->second = kEvaluator;
  proto::SampledFrame named;
  named.set_function(std::move(name.function));
  named.set_file(std::move(name.file));
  named.set_line(name.line);
  named.set_module(std::move(name.module));
  named.set_native(true);
  it->second = frame(named);
  if (!name.known) unknown_.insert(it->second);
  return it->second;
}

std::vector<uint32_t> StackTable::merged(const Stack& stack, std::string_view evaluator) {
  std::vector<uint32_t> frames;
  size_t next = 0;
  for (uint64_t pc : stack.pcs) {
    uint32_t id = native_frame(pc, evaluator);
    if (id != kEvaluator) {
      if (frames.empty() || frames.back() != id || !unknown_.contains(id)) frames.push_back(id);
      continue;
    }
    while (next < stack.language.size()) {
      frames.push_back(stack.language[next].first);
      if (stack.language[next++].second) break;
    }
  }
  // Language frames are left if there are no native frames, or unwinding stopped early.
  for (; next < stack.language.size(); ++next) frames.push_back(stack.language[next].first);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

void StackTable::write(const char* evaluator, proto::StackSamples* out) {
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::pair<int64_t, int64_t>> counted;
  for (const Stack& stack : stacks_) {
    if (stack.on_cpu + stack.off_cpu == 0) continue;
    auto frames = merged(stack, evaluator ? evaluator : "");
    if (frames.empty()) continue;
    auto& [on, off] = counted[{stack.thread, std::move(frames)}];
    on += stack.on_cpu;
    off += stack.off_cpu;
  }
  for (const auto& [where, looks] : counted) {
    proto::SampledStack* stack = out->add_stacks();
    stack->set_thread(where.first);
    stack->mutable_frames()->Add(where.second.begin(), where.second.end());
    stack->set_on_cpu(looks.first);
    stack->set_off_cpu(looks.second);
  }
  for (auto& named : frames_) *out->add_frames() = std::move(named);
}

}  // namespace rt::profile
