// libray_tls.so: OpenSSL over buffers in memory instead of sockets.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "common/tls/module/tls_api.h"

namespace {

struct Context {
  SSL_CTX* mutual = nullptr;
  SSL_CTX* open = nullptr;  // For servers that ask for no certificate.
  ~Context() {
    SSL_CTX_free(mutual);
    SSL_CTX_free(open);
  }
};

struct Session {
  SSL* ssl = nullptr;
  BIO* in = nullptr;  // Both belong to `ssl`.
  BIO* out = nullptr;
};

// Writes the last error that OpenSSL has recorded, or `otherwise`, to `error`.
void say_why(char* error, size_t size, const char* otherwise) {
  unsigned long code = ERR_peek_last_error();
  const char* reason = code ? ERR_reason_error_string(code) : nullptr;
  std::snprintf(error, size, "%s", reason ? reason : otherwise);
  ERR_clear_error();
}

bool say_file(char* error, size_t size, const char* what, const char* path) {
  char reason[160];
  // If a file cannot be read, the first error is the system's, and those after it only pass it on.
  if (const unsigned long first = ERR_peek_error(); ERR_SYSTEM_ERROR(first)) {
    std::snprintf(reason, sizeof reason, "%s", std::strerror(ERR_GET_REASON(first)));
    ERR_clear_error();
  } else {
    say_why(reason, sizeof reason, "unknown error");
  }
  std::snprintf(error, size, "%s %s: %s", what, path, reason);
  return false;
}

// OpenSSL would ask for the pass phrase of a key at the terminal or on standard input, where nobody
// answers a daemon.
int refuse_pass_phrase(char*, int, int, void* asked) {
  if (asked) *static_cast<bool*>(asked) = true;
  return -1;
}

bool load(SSL_CTX* context, const char* certificate, const char* key, char* error, size_t size) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_default_passwd_cb(context, refuse_pass_phrase);
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
    return say_file(error, size, "cannot use the certificate", certificate);
  bool asked = false;
  SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
  const int used = SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM);
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  if (used != 1 && asked) {
    ERR_clear_error();
    std::snprintf(error, size, "cannot use the key %s: it has a pass phrase, and must have none",
                  key);
    return false;
  }
  if (used != 1) return say_file(error, size, "cannot use the key", key);
  if (SSL_CTX_check_private_key(context) != 1)
    return say_file(error, size, "the certificate does not belong to the key", key);
  return true;
}

// Every process of a cluster is a client and a server, most with the same certificate, so the
// purpose for which the authority has signed it is not checked.
bool trust(SSL_CTX* context, const char* authorities, char* error, size_t size) {
  if (SSL_CTX_load_verify_locations(context, authorities, nullptr) != 1)
    return say_file(error, size, "cannot use the authority's certificate", authorities);
  X509_VERIFY_PARAM_set_purpose(SSL_CTX_get0_param(context), X509_PURPOSE_ANY);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  static const unsigned char kName[] = "ray";
  SSL_CTX_set_session_id_context(context, kName, sizeof kName - 1);
  return true;
}

void* open_context(const char* certificate, const char* key, const char* authorities, char* error,
                   size_t size) {
  ERR_clear_error();
  auto context = std::make_unique<Context>();
  context->mutual = SSL_CTX_new(TLS_method());
  context->open = SSL_CTX_new(TLS_server_method());
  if (!context->mutual || !context->open) {
    say_why(error, size, "OpenSSL does not start");
    return nullptr;
  }
  if (!load(context->mutual, certificate, key, error, size) ||
      !load(context->open, certificate, key, error, size) ||
      !trust(context->mutual, authorities, error, size))
    return nullptr;
  return context.release();
}

void close_context(void* given) { delete static_cast<Context*>(given); }

void* begin_session(void* given, ray_tls_side side) {
  auto* context = static_cast<Context*>(given);
  auto* session = new Session;
  session->ssl = SSL_new(side == RAY_TLS_OPEN_SERVER ? context->open : context->mutual);
  session->in = BIO_new(BIO_s_mem());
  session->out = BIO_new(BIO_s_mem());
  SSL_set_bio(session->ssl, session->in, session->out);
  if (side == RAY_TLS_CLIENT) {
    SSL_set_connect_state(session->ssl);
  } else {
    SSL_set_accept_state(session->ssl);
  }
  return session;
}

void end_session(void* given) {
  auto* session = static_cast<Session*>(given);
  SSL_free(session->ssl);
  delete session;
}

int received(void* given, const void* data, size_t size) {
  size_t taken = 0;
  return size == 0 ||
         (BIO_write_ex(static_cast<Session*>(given)->in, data, size, &taken) == 1 && taken == size);
}

// The other side has said that it does not accept the certificate that it was shown.
bool refuses_certificate(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA: return true;
    default: return false;
  }
}

// Writes why the session has failed. The reason for which a certificate was rejected says more than
// "certificate verify failed".
int failed(Session* session, char* error, size_t size) {
  long verdict = SSL_get_verify_result(session->ssl);
  if (verdict != X509_V_OK) {
    std::snprintf(error, size, "the other side's certificate is not accepted: %s",
                  X509_verify_cert_error_string(verdict));
    ERR_clear_error();
  } else if (refuses_certificate(ERR_peek_last_error())) {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    std::snprintf(error, size,
                  "the other side does not accept the certificate of this process "
                  "(RAY_TLS_SERVER_CERT): %s",
                  reason ? reason : "no reason given");
    ERR_clear_error();
  } else {
    say_why(error, size, "the connection is damaged");
  }
  return RAY_TLS_FAILED;
}

int shake_hands(void* given, char* error, size_t size) {
  auto* session = static_cast<Session*>(given);
  ERR_clear_error();
  int done = SSL_do_handshake(session->ssl);
  if (done == 1) return 1;
  int why = SSL_get_error(session->ssl, done);
  return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? RAY_TLS_MORE
                                                                   : failed(session, error, size);
}

long read_plain(void* given, void* data, size_t wanted, char* error, size_t size) {
  auto* session = static_cast<Session*>(given);
  ERR_clear_error();
  size_t n = 0;
  int done = SSL_read_ex(session->ssl, data, wanted, &n);
  if (done == 1) return static_cast<long>(n);
  switch (SSL_get_error(session->ssl, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return RAY_TLS_MORE;
    case SSL_ERROR_ZERO_RETURN: return RAY_TLS_ENDED;
    default: return failed(session, error, size);
  }
}

int write_plain(void* given, const void* data, size_t wanted, char* error, size_t size) {
  auto* session = static_cast<Session*>(given);
  if (wanted == 0) return 1;
  ERR_clear_error();
  size_t n = 0;
  // A buffer in memory takes everything.
  if (SSL_write_ex(session->ssl, data, wanted, &n) == 1 && n == wanted) return 1;
  failed(session, error, size);
  return 0;
}

void send_close_notify(void* given) {
  auto* session = static_cast<Session*>(given);
  if (SSL_is_init_finished(session->ssl)) SSL_shutdown(session->ssl);
  ERR_clear_error();
}

size_t to_send(void* given) { return BIO_ctrl_pending(static_cast<Session*>(given)->out); }

size_t take(void* given, void* data, size_t size) {
  size_t n = 0;
  return BIO_read_ex(static_cast<Session*>(given)->out, data, size, &n) == 1 ? n : 0;
}

}  // namespace

const ray_tls_api* ray_tls() {
  static const ray_tls_api api = {RAY_TLS_VERSION, open_context,      close_context, begin_session,
                                  end_session,     received,          shake_hands,   read_plain,
                                  write_plain,     send_close_notify, to_send,       take};
  return &api;
}
