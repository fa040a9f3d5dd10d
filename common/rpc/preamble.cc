#include "common/rpc/preamble.h"

#include <algorithm>

#include "common/base/status.h"

namespace rt::rpc {
namespace {

// The 80 bytes, padded with spaces: "RAY1 ", target (10), ' ', id in hex (56), 7 spaces, '\n'.
constexpr std::string_view kMagic = "RAY1 ";
constexpr size_t kTargetBytes = 10;
constexpr size_t kIdAt = kMagic.size() + kTargetBytes + 1;
constexpr size_t kIdBytes = 56;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// `text` without its trailing spaces.
std::string_view trim(std::string_view text) {
  size_t end = text.find_last_not_of(' ');
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace

std::string encode_preamble(const Preamble& preamble) {
  RT_CHECK(preamble.target.size() <= kTargetBytes && preamble.id.size() <= kIdBytes);
  std::string bytes(kPreambleBytes, ' ');
  bytes.replace(0, kMagic.size(), kMagic);
  bytes.replace(kMagic.size(), preamble.target.size(), preamble.target);
  bytes.replace(kIdAt, preamble.id.size(), preamble.id);
  bytes.back() = '\n';
  return bytes;
}

Result<Preamble> decode_preamble(std::string_view bytes) {
  auto malformed = [](const char* why) {
    return make_error(Code::kProtocol, std::string("malformed preamble: ") + why);
  };
  if (bytes.size() != kPreambleBytes) return malformed("not 80 bytes");
  if (!bytes.starts_with(kMagic)) return malformed("it does not begin with 'RAY1 '");
  if (bytes.back() != '\n') return malformed("it does not end with a line feed");
  Preamble preamble;
  preamble.target = trim(bytes.substr(kMagic.size(), kTargetBytes));
  preamble.id = trim(bytes.substr(kIdAt, kIdBytes));
  if (preamble.target.empty() || !std::all_of(preamble.target.begin(), preamble.target.end(),
                                              [](char c) { return c >= 'a' && c <= 'z'; })) {
    return malformed("its target is not a word");
  }
  if (!std::all_of(preamble.id.begin(), preamble.id.end(), is_hex))
    return malformed("its id is not hexadecimal");
  if (bytes[kIdAt - 1] != ' ' ||
      trim(bytes.substr(kIdAt + kIdBytes, kPreambleBytes - 1 - kIdAt - kIdBytes)) != "") {
    return malformed("there is text between its fields");
  }
  return preamble;
}

}  // namespace rt::rpc
