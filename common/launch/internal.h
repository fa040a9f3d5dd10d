// Private to common/launch: descriptors and small file helpers its parts share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace rt::launch {

// A descriptor that is closed with its owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// nullopt when it cannot be read. Bounded: these files are small by nature.
std::optional<std::string> read_file(const std::string& path, size_t max_bytes = 1 << 20);
// Complete or not there at all: written beside and renamed.
Status write_file_atomically(const std::string& path, std::string_view content, unsigned mode);
// Where a node known by `node_ip` listens.
std::string listening_host(const std::string& node_ip);
std::string_view trimmed(std::string_view text);
std::string environment(const char* name);   // empty when unset

}  // namespace rt::launch
