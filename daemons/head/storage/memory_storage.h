// Storage for tests. Records live as long as their Disk, so a test can open a second storage on
// the same Disk to simulate a restart, and can make writes fail.
#pragma once

#include <optional>

#include "daemons/head/storage/storage.h"

namespace rt::head {

class MemoryStorage final : public Storage {
 public:
  struct Disk {
    Tables tables;
    std::optional<Error> failure;  // While set, every apply() fails with this error.
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
