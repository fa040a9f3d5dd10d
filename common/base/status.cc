#include "common/base/status.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace rt {

std::string_view code_name(Code code) {
  static constexpr std::string_view kNames[] = {"ok",
                                                "invalid",
                                                "not found",
                                                "already exists",
                                                "timeout",
                                                "unavailable",
                                                "unauthenticated",
                                                "wrong version",
                                                "wrong cluster",
                                                "protocol error",
                                                "object store full",
                                                "out of disk",
                                                "object lost",
                                                "owner died",
                                                "worker crashed",
                                                "node died",
                                                "actor died",
                                                "actor unavailable",
                                                "cancelled",
                                                "I/O error",
                                                "internal error",
                                                "unsupported",
                                                "limit reached",
                                                "out of memory",
                                                "unschedulable",
                                                "local node died",
                                                "runtime environment failed"};
  auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::runtime_error(error.message + " (unchecked result at " + where.file_name() + ":" +
                           std::to_string(where.line()) + ")");
}

Error errno_error(std::string_view what, int errnum) {
  return make_error(Code::kIo, std::string(what) + ": " + std::strerror(errnum));
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "internal error: check failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace rt
