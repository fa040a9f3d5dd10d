// A file that holds disk space, to be given back when there is no other: what makes room in a
// database has to write first.
#pragma once

#include <cstdint>
#include <string>

namespace rt::head {

class DiskReserve {
 public:
  // Takes nothing yet; one that an earlier process left is kept.
  DiskReserve(std::string path, int64_t bytes);

  // Takes the space, unless it has it or there is none.
  void take();
  // Gives it back.
  void release();
  bool taken() const { return taken_; }

 private:
  const std::string path_;
  const int64_t bytes_;
  bool taken_ = false;
};

}  // namespace rt::head
