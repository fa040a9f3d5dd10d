// `rayctl train`: dispatches to the subcommands.
#include "cli/commands.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {

int run_train(const Words& words) {
  static constexpr std::pair<const char*, int (*)(const Words&)> kCommands[] = {
      {"list", run_train_list},       {"show", run_train_show},
      {"logs", run_train_logs},       {"stragglers", run_train_stragglers},
      {"profile", run_train_profile}, {"tensorboard", run_train_tensorboard}};
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print("{}", commands_text("train", command_infos()));
    return words.empty() ? kExitUsage : kExitOk;
  }
  for (const auto& [name, run] : kCommands) {
    if (words[0] == name) return run(Words(words.begin() + 1, words.end()));
  }
  return usage_error("train", "no such command: train " + excerpt(words[0]) +
                                  did_you_mean(words[0], command_names("train")));
}

}  // namespace rt::cli
