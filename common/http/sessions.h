// Signed-in browsers. Each has a secret of its own in its cookie instead of the cluster's token,
// because browsers send the cookies of a host to every port of it. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/mutex.h"

namespace rt::http {

class Sessions {
 public:
  static constexpr int64_t kSeconds = 30 * 24 * 3600;
  static constexpr size_t kMaxSessions = 1000;  // the session that expires first makes room

  // Opens a session and returns its secret. `now_s` comes from a clock that only goes forward.
  std::string open(int64_t now_s);
  bool knows(const std::string& secret, int64_t now_s) const;
  void close(const std::string& secret);

 private:
  mutable Mutex mutex_;
  std::map<std::string, int64_t> ends_ GUARDED_BY(mutex_);  // time of expiry, by secret
};

}  // namespace rt::http
