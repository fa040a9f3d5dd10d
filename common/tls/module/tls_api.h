// The interface between common/tls and libray_tls.so. It is in C, so that the two may come from
// different builds. The module is loaded when a cluster speaks TLS, so that no other process has
// OpenSSL in it.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RAY_TLS_VERSION = 1 };

enum ray_tls_side {
  RAY_TLS_CLIENT,       // Shows its certificate, and checks the peer's.
  RAY_TLS_SERVER,       // Shows its certificate, and checks the peer's.
  RAY_TLS_OPEN_SERVER,  // Shows its certificate and asks for none: for browsers.
};

// Results of read() and shake_hands() other than a number of bytes or 1.
enum { RAY_TLS_MORE = 0, RAY_TLS_FAILED = -1, RAY_TLS_ENDED = -2 };

// A context may be used by several threads, a session by one at a time. There are no sockets:
// ciphertext goes in and comes out. On failure `error` gets a text that names the cause.
struct ray_tls_api {
  int version;
  // Opens a context from three PEM files. NULL on failure.
  void* (*open)(const char* certificate, const char* key, const char* authorities, char* error,
                size_t error_size);
  void (*close)(void* context);
  void* (*begin)(void* context, enum ray_tls_side side);
  void (*end)(void* session);
  // Takes all of the ciphertext. 1: done; 0: out of memory.
  int (*received)(void* session, const void* ciphertext, size_t size);
  // 1: done; else RAY_TLS_MORE or RAY_TLS_FAILED.
  int (*shake_hands)(void* session, char* error, size_t error_size);
  // After the handshake. Returns the number of bytes, or RAY_TLS_MORE, _FAILED or _ENDED.
  long (*read)(void* session, void* plain, size_t size, char* error, size_t error_size);
  // After the handshake. Takes all of the plain text. 1: done; 0: failed.
  int (*write)(void* session, const void* plain, size_t size, char* error, size_t error_size);
  void (*send_close_notify)(void* session);  // Tells the peer that nothing follows.
  size_t (*to_send)(void* session);  // Returns the bytes of ciphertext that wait to be sent.
  // Removes ciphertext to be sent, up to `size` bytes, and returns how much.
  size_t (*take)(void* session, void* ciphertext, size_t size);
};

__attribute__((visibility("default"))) const struct ray_tls_api* ray_tls(void);

#ifdef __cplusplus
}
#endif
