// Pages that are refreshed in place on a terminal, and follow each other elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/command_line.h"

namespace rt::cli {

struct Refresh {
  int64_t interval_us = 2'000'000;
  int64_t pages = -1;  // -1: until the user has enough (q, Ctrl-C)
};
// --interval SECONDS and --iterations N.
void declare_refresh(CommandLine& line);
Result<Refresh> refresh_of(const CommandLine& line);

// Shows page() again and again. The first must succeed; when a later one fails, that is said above
// the last good one, and it is asked again. Ends with an error where the output cannot be written.
Status refresh(const Refresh& how, const std::function<Result<std::string>()>& page);

// `page` on a screen of so many rows and columns: longer lines end early, the last row says how
// much is not shown. Escapes take no room.
std::string clipped(const std::string& page, size_t rows, size_t columns);

}  // namespace rt::cli
