// Pages that are refreshed in place on a terminal. If stdout is no terminal, they are written one
// after the other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/terminal/command_line.h"

namespace rt::cli {

struct Refresh {
  int64_t interval_us = 2'000'000;
  int64_t pages = -1;  // -1 means until the user ends the program (q, Ctrl-C)
};
// Declares --interval SECONDS and --iterations N; refresh_of() reads them.
void declare_refresh(CommandLine& line);
Result<Refresh> refresh_of(const CommandLine& line);

// Calls page() and shows the result, again and again. An error of the first call is returned. When
// a later call fails, its error is shown above the last good page and the loop goes on. Returns
// kIo when the output cannot be written.
Status refresh(const Refresh& how, const std::function<Result<std::string>()>& page);

// `page` as it fits on a screen of `rows` and `columns`: longer lines are cut, and when lines are
// missing the last row says how many. Escape sequences take no columns.
std::string clipped(const std::string& page, size_t rows, size_t columns);

}  // namespace rt::cli
