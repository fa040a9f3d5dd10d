// Signed-in browsers. Each has a secret of its own in its cookie, so that the cluster's token is in
// none: browsers send a host's cookies to every port of it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace rt::http {

class Sessions {
 public:
  static constexpr int64_t kSeconds = 30 * 24 * 3600;
  static constexpr size_t kMost = 1000;  // the one that ends first makes room

  // `now_s`: of a clock that only goes forward.
  std::string open(int64_t now_s);
  bool knows(const std::string& secret, int64_t now_s) const;
  void close(const std::string& secret);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> ends_;  // by secret; threads of connections ask
};

}  // namespace rt::http
