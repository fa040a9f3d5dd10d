// Errors as values. A Result<T> holds a T or an Error, which has a code and a message that a user
// can act on.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace rt {

// Codes travel on the wire (proto RpcError.code): append, never renumber.
enum class Code : int {
  kOk = 0,
  kInvalid = 1,  // The caller's input is wrong.
  kNotFound = 2,
  kAlreadyExists = 3,
  kTimeout = 4,
  kUnavailable = 5,  // The peer is unreachable or the connection was lost; the call may work later.
  kUnauthenticated = 6,  // The token is missing or wrong.
  kWrongVersion = 7,     // The peer speaks another version of the protocol.
  kWrongCluster = 8,
  kProtocol = 9,  // A frame is malformed or oversized.
  kObjectStoreFull = 10,
  kOutOfDisk = 11,
  kObjectLost = 12,
  kOwnerDied = 13,
  kWorkerCrashed = 14,
  kNodeDied = 15,
  kActorDied = 16,
  kActorUnavailable = 17,
  kCancelled = 18,
  kIo = 19,  // The operating system refused; the message says what and why.
  kInternal = 20,
  kUnsupported = 21,
  kResourceExhausted = 22,  // A limit of this software was reached; the message names it.
  kOutOfMemory = 23,
  kUnschedulable = 24,
  kLocalNodeDied = 25,    // The calling process's node-manager is gone.
  kRuntimeEnvSetup = 26,  // A runtime environment could not be made.
};

std::string_view code_name(Code code);

// Returns whether the peer may only be away for a while, so that it is worth asking again.
inline bool may_recover(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

struct Error {
  Code code = Code::kInternal;
  std::string message;
};

// Called by value() of a Result that holds an error. That is a bug of the caller; throws
// std::runtime_error.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

template <class T>
using Result = boost::system::result<T, Error>;
using Status = Result<void>;

inline Error make_error(Code code, std::string message) { return Error{code, std::move(message)}; }
// An error of kIo with the message "<what>: <strerror(errnum)>".
Error errno_error(std::string_view what, int errnum);

}  // namespace rt

// Returns the error of `expr` (a Result or Status) to the caller, if there is one.
#define RT_TRY(expr)                                             \
  do {                                                           \
    auto rt_try_result = (expr);                                 \
    if (!rt_try_result) return std::move(rt_try_result).error(); \
  } while (0)
#define RT_CONCAT_(a, b) a##b
#define RT_CONCAT(a, b) RT_CONCAT_(a, b)
// RT_ASSIGN(auto x, expr) sets x to *expr, or returns the error of `expr` to the caller.
#define RT_ASSIGN(decl, expr) RT_ASSIGN_(decl, expr, RT_CONCAT(rt_res_, __LINE__))
#define RT_ASSIGN_(decl, expr, tmp)        \
  auto tmp = (expr);                       \
  if (!tmp) return std::move(tmp).error(); \
  decl = std::move(*tmp)

// For bugs of this software: always on, prints the condition and aborts. Never for input from
// peers, users or the system.
#define RT_CHECK(cond)                               \
  do {                                               \
    if (!(cond)) [[unlikely]]                        \
      ::rt::check_failed(#cond, __FILE__, __LINE__); \
  } while (0)

namespace rt {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}
