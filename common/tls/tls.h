// TLS for the TCP connections of a cluster. Both sides show a certificate of the cluster's
// authority: a process that has one may connect, and the token is demanded all the same. Host names
// in certificates are not checked. Nodes come and go and are reached by their addresses; what is
// trusted is an authority of the cluster's own.
//
// A process speaks TLS on every TCP connection or on none. The environment decides (RAY_USE_TLS and
// the names below), and child processes inherit it.
#pragma once

#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/tls/module/tls_api.h"

namespace rt::tls {

inline constexpr char kUse[] = "RAY_USE_TLS", kCertificate[] = "RAY_TLS_SERVER_CERT",
                      kKey[] = "RAY_TLS_SERVER_KEY", kAuthorities[] = "RAY_TLS_CA_CERT";

struct Files {
  std::string certificate, key, authorities;  // The paths of PEM files.
};

// One TLS conversation, without a socket: received ciphertext goes in, and ciphertext to be sent
// comes out. Used by one thread at a time.
class Session {
 public:
  ~Session() { api_.end(self_); }
  Session(const Session&) = delete;

  // Whether a TLS conversation can begin with this byte. A peer that sends anything else speaks
  // plain text.
  static bool is_record(uint8_t first_byte) { return first_byte >= 0x14 && first_byte <= 0x17; }

  // Takes all of `ciphertext`. kResourceExhausted: there is no memory for it.
  Status received(Bytes ciphertext);
  // True when the handshake is done; before that nothing can be read or written. Ciphertext may
  // have to be sent after every call, also after an error (kUnauthenticated).
  Result<bool> shake_hands();
  // Returns the number of bytes of plain text; 0: more ciphertext must arrive first. kUnavailable
  // when the peer has ended the conversation, kUnauthenticated when it is damaged.
  Result<size_t> read(MutableBytes plain);
  Status write(Bytes plain);
  void send_close_notify() {
    api_.send_close_notify(self_);
  }  // tells the peer that nothing follows
  // Bytes of ciphertext that wait to be sent.
  size_t to_send() const { return api_.to_send(self_); }
  // Moves ciphertext to be sent into the buffer and returns how many bytes.
  size_t take(MutableBytes ciphertext) {
    return api_.take(self_, ciphertext.data(), ciphertext.size());
  }
  // Appends all ciphertext that waits to be sent.
  void take_all(std::string* appended);

 private:
  friend class Tls;
  Session(const ray_tls_api& api, void* self) : api_(api), self_(self) {}
  const ray_tls_api& api_;
  void* self_;
};

// Whether the environment asks for TLS.
bool requested_by_environment();

// A certificate with its key, and the authority that it trusts. Any thread may use it.
class Tls {
 public:
  // kInvalid names the file and what is wrong with it. kUnsupported: this installation has no TLS.
  static Result<std::shared_ptr<const Tls>> open(const Files& files);
  // Made from the environment at the first call, and never destroyed. Null when the environment
  // asks for no TLS; an error when its variables or files are wrong.
  static const Result<std::shared_ptr<const Tls>>& of_process();
  // Its sessions must have ended.
  ~Tls();
  Tls(const Tls&) = delete;

  std::unique_ptr<Session> begin(ray_tls_side side) const {
    return std::unique_ptr<Session>(new Session(api_, api_.begin(self_, side)));
  }

 private:
  Tls(const ray_tls_api& api, void* self) : api_(api), self_(self) {}
  const ray_tls_api& api_;
  void* self_;
};

}  // namespace rt::tls
