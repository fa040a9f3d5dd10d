// The interface of libray_http.so: an HTTP server for connections that were accepted elsewhere. It
// is a module because a daemon which is hardly ever asked need not hold the server, with its parser
// and WebSockets, all the time.
#pragma once

#include <cstddef>

#define RAY_HTTP_VERSION 2

namespace rt::tls {
class Tls;
}

extern "C" {

// Writes the body of an answer into `sink` with `put` and returns the status. Called in threads of
// the server, several at once.
typedef int (*ray_http_answer)(void* context, const char* path,
                               void (*put)(void* sink, const char* text, size_t size), void* sink);

struct ray_http_api {
  int version;
  // NULL on failure. An empty token lets everyone in; `tls` is null for plain text. `tls` and
  // `context` must outlive the server, and the threads that are still answering when it ends.
  void* (*open)(const char* token, int max_connections, const rt::tls::Tls* tls,
                ray_http_answer answer, void* context);
  void (*serve)(void* server, int fd);  // takes the connection
  void (*close)(void* server);
};

__attribute__((visibility("default"))) const ray_http_api* ray_http();
}
