// A set of nodes, by slot (nodes.h). Conditions on nodes are intersections of such sets.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rt::scheduling {

// The place of a node in a `Nodes`, which it keeps until it is removed.
using NodeSlot = int;
inline constexpr NodeSlot kNoNode = -1;

class NodeMask {
 public:
  NodeMask() = default;
  explicit NodeMask(size_t slots) : words_((slots + kBits - 1) / kBits) {}

  void add(NodeSlot slot) {
    const auto at = static_cast<size_t>(slot);
    if (at / kBits >= words_.size()) words_.resize(at / kBits + 1);
    words_[at / kBits] |= bit(at);
  }
  void remove(NodeSlot slot) {
    const auto at = static_cast<size_t>(slot);
    if (at / kBits < words_.size()) words_[at / kBits] &= ~bit(at);
  }
  bool contains(NodeSlot slot) const {
    const auto at = static_cast<size_t>(slot);
    return slot >= 0 && at / kBits < words_.size() && (words_[at / kBits] & bit(at)) != 0;
  }
  bool empty() const {
    for (uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  int size() const {
    int count = 0;
    for (uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  // The lowest slot from `start` on, or kNoNode.
  NodeSlot first(NodeSlot start = 0) const {
    auto at = static_cast<size_t>(start);
    for (size_t i = at / kBits; i < words_.size(); ++i, at = i * kBits) {
      if (uint64_t left = words_[i] & (~uint64_t{0} << at % kBits))
        return static_cast<NodeSlot>(i * kBits) + std::countr_zero(left);
    }
    return kNoNode;
  }

  NodeMask& operator&=(const NodeMask& other) {
    for (size_t i = 0; i < words_.size(); ++i)
      words_[i] &= i < other.words_.size() ? other.words_[i] : 0;
    return *this;
  }
  NodeMask& operator-=(const NodeMask& other) {
    for (size_t i = 0; i < words_.size() && i < other.words_.size(); ++i)
      words_[i] &= ~other.words_[i];
    return *this;
  }
  friend NodeMask operator&(NodeMask a, const NodeMask& b) { return a &= b; }

 private:
  static constexpr size_t kBits = 64;
  static uint64_t bit(size_t at) { return uint64_t{1} << at % kBits; }

  std::vector<uint64_t> words_;
};

}  // namespace rt::scheduling
