#include "common/http/sessions.h"

#include <sys/random.h>

#include <algorithm>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/token.h"

namespace rt::http {
namespace {

constexpr size_t kSecretBytes = 32;

}  // namespace

std::string Sessions::open(int64_t now_s) {
  std::string bytes(kSecretBytes, '\0');
  RT_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  const std::string secret = to_hex(bytes);
  MutexLock lock(mutex_);
  std::erase_if(ends_, [now_s](const auto& one) { return one.second <= now_s; });
  if (ends_.size() >= kMaxSessions)
    ends_.erase(std::min_element(ends_.begin(), ends_.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; }));
  ends_[secret] = now_s + kSeconds;
  return secret;
}

bool Sessions::knows(const std::string& secret, int64_t now_s) const {
  bool known = false;
  MutexLock lock(mutex_);
  for (const auto& [open, end] : ends_)
    // All are compared, so that the time taken tells nothing.
    known |= end > now_s && same_secret(secret, open);
  return known;
}

void Sessions::close(const std::string& secret) {
  MutexLock lock(mutex_);
  ends_.erase(secret);
}

}  // namespace rt::http
