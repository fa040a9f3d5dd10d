// TLS for what a cluster says over TCP: both sides show a certificate of the cluster's authority.
// Whoever has one may speak; the token is asked for all the same. Hosts are not named in
// certificates here: nodes come and go and are reached at addresses, so an authority of the
// cluster's own is what is trusted.
//
// A process speaks TLS on every TCP connection or on none: what it does comes from the environment
// (RAY_USE_TLS and the names below), which its children inherit.
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
  std::string certificate, key, authorities;  // PEM
};

// One conversation, without a socket: what came goes in, what is to be sent comes out. Used by one
// thread at a time.
class Session {
 public:
  ~Session() { api_.end(self_); }
  Session(const Session&) = delete;

  // What a TLS conversation can begin with; anything else is a peer that speaks plain text.
  static bool is_record(uint8_t first_byte) { return first_byte >= 0x14 && first_byte <= 0x17; }

  Status received(Bytes ciphertext);
  Result<bool> shake_hands();  // true: done. Before that nothing is read or written
  // Bytes of plain text, 0: more must come first. kUnavailable when the other side has ended the
  // conversation.
  Result<size_t> read(MutableBytes plain);
  Status write(Bytes plain);
  void say_end() { api_.say_end(self_); }  // nothing follows
  size_t to_send() const { return api_.to_send(self_); }
  size_t take(MutableBytes ciphertext) {
    return api_.take(self_, ciphertext.data(), ciphertext.size());
  }
  void take_all(std::string* appended);

 private:
  friend class Tls;
  Session(const ray_tls_api& api, void* self) : api_(api), self_(self) {}
  const ray_tls_api& api_;
  void* self_;
};

// Whether the environment asks for TLS.
bool of_environment();

// A certificate and whom it trusts. Any thread.
class Tls {
 public:
  // kInvalid names the file and what is wrong with it; kUnsupported when this installation has no
  // TLS.
  static Result<std::shared_ptr<const Tls>> open(const Files& files);
  // Of the environment, read once; null when it asks for none.
  static const Result<std::shared_ptr<const Tls>>& of_process();
  ~Tls();  // after its sessions
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
