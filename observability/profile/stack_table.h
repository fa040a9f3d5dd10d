// Private to observability/profile: collects and counts the different stacks of one profile. Names
// of native frames are looked up at the end, once for each address.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/proto/profile.pb.h"
#include "observability/profile/language.h"
#include "observability/profile/unwinder.h"

namespace rt::profile {

class StackTable {
 public:
  // `symbols` is null if there is no language, `unwinder` if there are to be no native frames. Both
  // must outlive the table.
  StackTable(LanguageSymbols* symbols, Unwinder* unwinder);

  // Returns the number of the captured stack; equal stacks of a thread have the same number.
  size_t add(uint32_t thread, const Capture& capture);
  // Adds `looks` to the count of a stack.
  void count(size_t stack, bool on_cpu, int64_t looks);
  // Writes stacks, counts and frames; may be called once. Stacks without frames are left out, as
  // those of threads that run no code of the language when there are no native frames.
  void write(const char* evaluator, proto::StackSamples* out);
  // Whether there are kMaxStacks different stacks.
  bool full() const;

 private:
  struct Stack {
    uint32_t thread = 0;
    std::vector<uint64_t> pcs;                        // The innermost comes first.
    std::vector<std::pair<uint32_t, bool>> language;  // (frame, entry), innermost first
    int64_t on_cpu = 0, off_cpu = 0;
  };
  uint32_t frame(const proto::SampledFrame& frame);
  uint32_t native_frame(uint64_t pc, std::string_view evaluator);
  std::vector<uint32_t> merged(const Stack& stack, std::string_view evaluator);

  LanguageSymbols* const symbols_;
  Unwinder* const unwinder_;
  std::vector<Stack> stacks_;
  std::unordered_map<std::string, size_t> known_;
  std::vector<proto::SampledFrame> frames_;
  std::unordered_map<std::string, uint32_t> frame_ids_;
  std::unordered_map<uint64_t, uint32_t> native_ids_;
  // Native frames without a symbol. A sequence of the same one is written as a single frame.
  std::unordered_set<uint32_t> unknown_;
  std::vector<uint64_t> pcs_;     // Scratch space of add().
  std::vector<FrameName> names_;  // Scratch space of add().
};

}  // namespace rt::profile
