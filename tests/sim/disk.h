// The disk of a head. It survives a crash.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "daemons/head/core/records.h"

namespace rt::sim {

struct Disk {
  // Writes the batch. `now_us` is when.
  void commit(const head::Batch& batch, int64_t now_us);
  // Forgets what was written after `since_us`, although it was confirmed, as a drive does that had
  // it in a cache when the power failed, or a directory that comes back from a copy. Only for a
  // disk that `forgets`.
  void set_back(int64_t since_us);

  head::Tables tables;
  bool full = false;     // writes fail
  bool forgets = false;  // remembers what its writes have replaced

 private:
  struct Replaced {
    int64_t at_us = 0;
    std::string table, key;
    std::optional<std::string> value;  // absent: there was none
  };
  std::deque<Replaced> replaced_;  // oldest first
};

}  // namespace rt::sim
