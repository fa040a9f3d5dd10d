// Storage for tests: records live as long as the Disk they are written to, so that a test can
// "restart" on it, and writes can be made to fail.
#pragma once

#include <optional>

#include "daemons/head/storage/storage.h"

namespace rt::head {

class MemoryStorage final : public Storage {
 public:
  struct Disk {
    Tables tables;
    std::optional<Error> failure;  // of every apply() while set
    int batches = 0;
  };
  MemoryStorage(Disk& disk, PostTask post) : disk_(disk), post_(std::move(post)) {}

  Result<Tables> load() override { return disk_.tables; }
  void apply(Batch batch, Done done) override;
  static void write(Disk& disk, const Batch& batch);

 private:
  Disk& disk_;
  PostTask post_;
};

}  // namespace rt::head
