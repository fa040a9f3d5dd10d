// The strings of a batch of task events, each once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rt::events {

// Numbers the texts of a batch, so that each is stored once. It is not thread-safe.
class StringTable {
 public:
  // Index 0 is "".
  StringTable() : strings_(1) {}
  // Begins with the caller's strings, of which [0] must be "". They are not found by number().
  explicit StringTable(std::vector<std::string> strings) : strings_(std::move(strings)) {}

  // The index of a string, which is added if it is new. Valid until clear().
  uint32_t number(const std::string& text) {
    if (text.empty()) return 0;
    auto [it, added] = numbers_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (added) {
      strings_.push_back(text);
      bytes_ += text.size();
    }
    return it->second;
  }
  const std::vector<std::string>& all() const { return strings_; }
  // The size of those that number() has added.
  size_t bytes() const { return bytes_; }
  void clear() {
    strings_.assign(1, "");
    numbers_.clear();
    bytes_ = 0;
  }

 private:
  std::vector<std::string> strings_;
  std::unordered_map<std::string, uint32_t> numbers_;
  size_t bytes_ = 0;
};

}  // namespace rt::events
