// Writes text to stdout and stderr. fmt::print throws when the reader has gone or the disk is full,
// possibly in the middle of a command or in a destructor. print() remembers the failure instead, so
// that a command finishes what it has begun; flush_output() reports it.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace rt::cli {

// Writes `text` to stdout unchanged.
void write_output(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}

// This one is for stderr. Failures are ignored, because there is no other place to report them.
template <typename... Args>
void print(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), file);
}

// Flushes stdout and returns kIo if anything printed so far could not be written. If the reader of
// a pipe has gone, the function does not return: SIGPIPE ends the process, as users expect.
Status flush_output();
// Like flush_output(), but also notices a reader that has gone when there is nothing to write. For
// commands that may wait long for their next output.
Status flush_to_reader();

}  // namespace rt::cli
