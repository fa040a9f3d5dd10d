// The columns of a batch of task events: blocks of kBlock events, each packed when it is full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "observability/events/bits.h"

namespace rt::events {

// The columns of a block, in their order.
enum ColumnOf : size_t {
  kOwnerColumn,
  kLeadColumn,
  kCommonColumn,
  kStartColumn,
  kCreatedColumn,
  kDeserializeColumn,
  kExecuteColumn,
  kStoreColumn,
  kColumns
};

// Holds the open block unpacked. Its arrays are not initialised, because an event sets each of its
// numbers. Not thread-safe.
class EventColumns {
 public:
  // The numbers of the next event.
  void set(ColumnOf column, uint64_t number) { block_[column][in_block_] = number; }
  void set_lead(uint64_t lead) { leads_[in_block_] = lead; }
  // Ends the event. Returns true if the block is full: end_block() must follow.
  bool end_event() { return ++in_block_ == kBlock; }
  // Whether the open block has events.
  bool is_open() const { return in_block_ > 0; }
  // Packs the open block. Returns the leading numbers of its events, which are valid until the next
  // event.
  std::span<const uint64_t> end_block() {
    for (const auto& column : block_) put_column(packed_, {column.data(), in_block_});
    const std::span<const uint64_t> leads(leads_.data(), in_block_);
    in_block_ = 0;
    return leads;
  }
  const std::string& packed() const { return packed_; }
  void clear() {
    packed_.clear();
    in_block_ = 0;
  }

 private:
  std::string packed_;
  size_t in_block_ = 0;
  std::array<std::array<uint64_t, kBlock>, kColumns> block_;
  std::array<uint64_t, kBlock> leads_;  // leading numbers, not their differences
};

}  // namespace rt::events
