// What libray_http.so offers: an HTTP server for connections that were accepted elsewhere. A
// module, because cpp-httplib brings OpenSSL and others along: five megabytes that a daemon which
// is hardly ever asked need not have.
#pragma once

#include <cstddef>

#define RAY_HTTP_VERSION 2

namespace rt::tls {
class Tls;
}

extern "C" {

// Puts an answer into `sink` with `put` and returns its status. Called in threads of the server.
typedef int (*ray_http_answer)(void* context, const char* path,
                               void (*put)(void* sink, const char* text, size_t size), void* sink);

struct ray_http_api {
  int version;
  // token empty: everybody may ask. tls null: plain text. `tls` and `context` outlive the server,
  // and threads that are still answering when it ends.
  void* (*open)(const char* token, int max_connections, const rt::tls::Tls* tls,
                ray_http_answer answer, void* context);
  void (*serve)(void* server, int fd);  // takes the connection
  void (*close)(void* server);
};

__attribute__((visibility("default"))) const ray_http_api* ray_http();
}
