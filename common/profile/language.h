// What an interpreter in this process says of its frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rt::profile {

// As the interrupted thread had it; only numbers, their meaning is known to the language.
struct LanguageFrame {
  uint64_t code = 0;
  uint64_t instruction = 0;
  bool entry = false;  // the outermost one of its evaluator's native frame
};

struct FrameName {
  std::string function, file;
  int line = 0;
};

// Names of one profile's frames. Used by one thread, which must not need the interpreter's locks.
class LanguageSymbols {
 public:
  virtual ~LanguageSymbols() = default;
  // One name per frame; what has vanished since says so in its name.
  virtual void resolve(std::span<const LanguageFrame> frames, std::vector<FrameName>* names) = 0;
};

struct Language {
  const char* name;       // "Python 3.11.2"
  const char* evaluator;  // the native function that language frames stand for
  // In a signal handler, on the thread whose frames it stores, innermost first: no locks, no
  // memory, no faults.
  size_t (*capture)(LanguageFrame* out, size_t capacity) noexcept;
  std::unique_ptr<LanguageSymbols> (*symbols)();
};

// Before the first profile. `language` lives as long as the process.
void set_language(const Language* language);
const Language* language();

}  // namespace rt::profile
