// A file that holds disk space and gives it back when the disk is full: a database must write
// before it can make room. One thread at a time may use it.
#pragma once

#include <cstdint>
#include <string>

namespace rt::head {

class DiskReserve {
 public:
  // Takes no space yet, but counts a reserve that an earlier process left as taken.
  DiskReserve(std::string path, int64_t bytes);

  // Takes the space. Does nothing if it is taken already; leaves taken() false if the disk has no
  // room for it.
  void take();
  // Gives the space back.
  void release();
  bool taken() const { return taken_; }

 private:
  const std::string path_;
  const int64_t bytes_;
  bool taken_ = false;
};

}  // namespace rt::head
