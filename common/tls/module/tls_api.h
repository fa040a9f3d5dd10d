// Between common/tls and libray_tls.so, which is loaded when a cluster speaks TLS: C, so that the
// two may be of different builds, and no other process has OpenSSL in it.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RAY_TLS_VERSION = 1 };

enum ray_tls_side {
  RAY_TLS_CLIENT,       // shows its certificate, and checks the other's
  RAY_TLS_SERVER,       // likewise
  RAY_TLS_OPEN_SERVER,  // shows its certificate and asks for none: browsers
};

// What read() returns when it returns no bytes.
enum { RAY_TLS_MORE = 0, RAY_TLS_FAILED = -1, RAY_TLS_ENDED = -2 };

// A context may be used by several threads, a session by one at a time. `error` gets text that
// names the cause. No sockets: ciphertext goes in and comes out.
struct ray_tls_api {
  int version;
  // PEM files. NULL: `error` says why.
  void* (*open)(const char* certificate, const char* key, const char* authorities, char* error,
                size_t error_size);
  void (*close)(void* context);
  void* (*begin)(void* context, enum ray_tls_side side);
  void (*end)(void* session);
  int (*received)(void* session, const void* ciphertext,
                  size_t size);  // all of it; 0: out of memory
  int (*shake_hands)(void* session, char* error,
                     size_t error_size);  // 1: done; RAY_TLS_MORE, RAY_TLS_FAILED
  long (*read)(void* session, void* plain, size_t size, char* error,
               size_t error_size);  // after the handshake
  int (*write)(void* session, const void* plain, size_t size, char* error,
               size_t error_size);   // after the handshake: all of it; 0: failed
  void (*say_end)(void* session);    // tells the other side that nothing follows
  size_t (*to_send)(void* session);  // bytes of ciphertext that wait
  size_t (*take)(void* session, void* ciphertext, size_t size);
};

__attribute__((visibility("default"))) const struct ray_tls_api* ray_tls(void);

#ifdef __cplusplus
}
#endif
