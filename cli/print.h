// Text for stdout and stderr. fmt::print throws where the reader has gone or the disk is full, in
// the middle of a command or in a destructor; print() remembers it instead: a command that has
// begun something goes on with it, and flush_output() reports it.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace rt::cli {

// To stdout, as it is.
void write_output(std::string_view text);

template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}

// To stderr, mostly: what cannot be written there is lost, there is no other place to say so.
template <typename... Args>
void print(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), file);
}

// What was printed has left this process; kIo says why it could not. Where nobody reads any more
// this process ends, by SIGPIPE as others do.
Status flush_output();
// flush_output(), for what goes on without writing: also ends where nobody reads any more, though
// nothing was to be written.
Status flush_to_reader();

}  // namespace rt::cli
