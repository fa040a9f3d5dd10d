#include "common/tls/tls.h"

#include <fmt/core.h>

#include "common/base/environment.h"
#include "common/base/module.h"

namespace rt::tls {

bool requested_by_environment() {
  std::string use = environment(kUse);
  return use == "1" || use == "true" || use == "True";
}

namespace {

constexpr size_t kErrorBytes = 512;

Result<const ray_tls_api*> load() {
  Result<void*> entry = load_module("libray_tls.so", "ray_tls");
  if (!entry)
    return make_error(Code::kUnsupported,
                      fmt::format("cannot use TLS: {} (it comes with this software and needs "
                                  "OpenSSL: apt install libssl3)",
                                  entry.error().message));
  const ray_tls_api* api = reinterpret_cast<decltype(&ray_tls)>(*entry)();
  if (api && api->version == RAY_TLS_VERSION) return api;
  return make_error(Code::kUnsupported,
                    "cannot use TLS: libray_tls.so belongs to another release: reinstall");
}

Result<std::shared_ptr<const Tls>> from_environment() {
  std::string use = environment(kUse);
  if (use.empty() || use == "0" || use == "false" || use == "False")
    return std::shared_ptr<const Tls>();
  if (!requested_by_environment())
    return make_error(Code::kInvalid, fmt::format("{} is '{}': it takes 1 or 0", kUse, use));
  Files files;
  for (auto [name, file] : {std::pair{kCertificate, &files.certificate},
                            {kKey, &files.key},
                            {kAuthorities, &files.authorities}}) {
    *file = environment(name);
    if (file->empty())
      return make_error(
          Code::kInvalid,
          fmt::format("{} is set but {} is not: it names a PEM file (docs/tls.md)", kUse, name));
  }
  return Tls::open(files);
}

}  // namespace

Status Session::received(Bytes ciphertext) {
  if (api_.received(self_, ciphertext.data(), ciphertext.size())) return {};
  return make_error(Code::kResourceExhausted, "no memory for a TLS connection");
}

Result<bool> Session::shake_hands() {
  char error[kErrorBytes] = "";
  int done = api_.shake_hands(self_, error, sizeof error);
  if (done == RAY_TLS_FAILED)
    return make_error(Code::kUnauthenticated, std::string("the TLS handshake failed: ") + error);
  return done == 1;
}

Result<size_t> Session::read(MutableBytes plain) {
  char error[kErrorBytes] = "";
  long n = api_.read(self_, plain.data(), plain.size(), error, sizeof error);
  if (n >= 0) return static_cast<size_t>(n);
  if (n == RAY_TLS_ENDED)
    return make_error(Code::kUnavailable, "the other side closed the connection");
  return make_error(Code::kUnauthenticated, std::string("TLS: ") + error);
}

Status Session::write(Bytes plain) {
  char error[kErrorBytes] = "";
  if (api_.write(self_, plain.data(), plain.size(), error, sizeof error)) return {};
  return make_error(Code::kUnavailable, std::string("TLS: ") + error);
}

void Session::take_all(std::string* appended) {
  size_t before = appended->size(), waiting = to_send();
  appended->resize(before + waiting);
  size_t n = take({reinterpret_cast<uint8_t*>(appended->data()) + before, waiting});
  appended->resize(before + n);
}

Result<std::shared_ptr<const Tls>> Tls::open(const Files& files) {
  static const Result<const ray_tls_api*> api = load();
  if (!api) return api.error();
  char error[kErrorBytes] = "";
  void* self = (*api)->open(files.certificate.c_str(), files.key.c_str(), files.authorities.c_str(),
                            error, sizeof error);
  if (!self) return make_error(Code::kInvalid, fmt::format("TLS: {}", error));
  return std::shared_ptr<const Tls>(new Tls(**api, self));
}

Tls::~Tls() { api_.close(self_); }

const Result<std::shared_ptr<const Tls>>& Tls::of_process() {
  // The object is never destroyed, because threads that end late use it.
  static const auto& tls = *new Result<std::shared_ptr<const Tls>>(from_environment());
  return tls;
}

}  // namespace rt::tls
