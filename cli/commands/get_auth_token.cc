// `rayctl get-auth-token`: prints the cluster's token, or makes one.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "launch/node/launch.h"

namespace rt::cli {

int run_get_auth_token(const Words& words) {
  CommandLine line("get-auth-token",
                   "Prints the cluster token: give it to machines that join (RAY_AUTH_TOKEN or "
                   "~/.ray/auth_token).");
  line.flag("generate", "make the token when there is none");
  if (auto code = line.parse(words)) return *code;
  auto token = launch::auth_token(line.has("generate"));
  if (!token) return failure(token.error());
  if (token->empty())
    return failure(make_error(Code::kNotFound, "RAY_AUTH_MODE is disabled: there is no token"));
  // stdout gets no newline, so that a file holds the token alone; the newline on stderr keeps a
  // terminal readable.
  print("{}", *token);
  if (auto written = flush_output(); !written) return failure(written.error());
  print(stderr, "\n");
  return kExitOk;
}

}  // namespace rt::cli
