// Private to common/profile: the different stacks of one profile, counted, and their names in the
// end.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/profile/language.h"
#include "common/profile/unwinder.h"
#include "common/proto/profile.pb.h"

namespace rt::profile {

class StackTable {
 public:
  // `symbols` null: no language here; `unwinder` null: no native frames. Both outlive this.
  StackTable(LanguageSymbols* symbols, Unwinder* unwinder)
      : symbols_(symbols), unwinder_(unwinder) {}

  // The number of this capture's stack; equal ones have the same.
  size_t add(uint32_t thread, const Capture& capture);
  void count(size_t stack, bool on_cpu, int64_t looks);
  // Without those that have no frames: threads that are not the language's when native frames are
  // not wanted.
  void write(const char* evaluator, proto::StackSamples* out);
  bool full() const;

 private:
  struct Stack {
    uint32_t thread = 0;
    std::vector<uint64_t> pcs;                        // innermost first
    std::vector<std::pair<uint32_t, bool>> language;  // frame, entry; innermost first
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
  std::unordered_set<uint32_t>
      unknown_;                // native frames without a symbol: a run of one of them is one frame
  std::vector<uint64_t> pcs_;  // scratch
  std::vector<FrameName> names_;
};

}  // namespace rt::profile
