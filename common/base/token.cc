#include "common/base/token.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace rt {

Status check_token_bytes(std::string_view token, const std::string& source) {
  const bool control = std::any_of(token.begin(), token.end(),
                                   [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (!control && valid_utf8(token) == token) return {};
  return make_error(Code::kInvalid,
                    source +
                        " holds bytes that no token has (control characters, or what is not "
                        "UTF-8): `rayctl get-auth-token` on the head's machine prints the token");
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^
                 static_cast<unsigned char>(b.empty() ? '\0' : b[i % b.size()]);
  return different == 0;
}

}  // namespace rt
