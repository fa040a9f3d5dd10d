// The interface by which an interpreter in this process reports its frames to the profiler. Python
// implements it in python/binding/python_frames.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rt::profile {

// A frame as it was captured in the interrupted thread. The numbers have a meaning only for the
// language.
struct LanguageFrame {
  uint64_t code = 0;
  uint64_t instruction = 0;
  // Whether it is the outermost frame that one native frame of the evaluator executes.
  bool entry = false;
};

struct FrameName {
  std::string function, file;
  int line = 0;
};

// Finds the names of frames during one profile. One thread uses it. It must work without the
// interpreter's locks.
class LanguageSymbols {
 public:
  virtual ~LanguageSymbols() = default;
  // Sets `names` to one name for each frame. A frame whose code has been freed since gets a name
  // that says so.
  virtual void resolve(std::span<const LanguageFrame> frames, std::vector<FrameName>* names) = 0;
};

struct Language {
  const char* name;       // For example "Python 3.11.2".
  const char* evaluator;  // The native function whose frames are replaced by language frames.
  // Stores the frames of the calling thread, innermost first, and returns their number. Called in a
  // signal handler: it must not take locks, allocate memory or fault.
  size_t (*capture)(LanguageFrame* out, size_t capacity) noexcept;
  // Makes the symbols for one profile.
  std::unique_ptr<LanguageSymbols> (*symbols)();
};

// To be called before the first profile. `language` must live as long as the process.
void set_language(const Language* language);
// The registered language, or null.
const Language* language();

}  // namespace rt::profile
