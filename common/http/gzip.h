// Compressed bodies, by zlib.
#pragma once

#include <zlib.h>

#include <functional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::http {

// Makes one gzip file of the pieces that it is given.
class Packer {
 public:
  Packer();
  ~Packer();
  Packer(const Packer&) = delete;

  // Returns the bytes that the file has next. Ends the file when `is_last` is set; otherwise a
  // reader can unpack everything that was added so far.
  std::string add(std::string_view piece, bool is_last);

 private:
  z_stream stream_{};
};

// Reads gzip and zlib ("deflate" in HTTP) data. A gzip file that consists of several ones in a row
// is refused at the end of the first.
class Unpacker {
 public:
  // Takes unpacked bytes. False ends the unpacking.
  using Take = std::function<bool(std::string_view)>;
  Unpacker();
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;

  // Fails with kInvalid if the data is damaged or goes on after its end, and with kCancelled if
  // `take` had enough.
  Status add(std::string_view piece, const Take& take);
  bool is_whole() const { return is_whole_; }

 private:
  z_stream stream_{};
  bool is_whole_ = false;
};

}  // namespace rt::http
