// Hidden commands of the build: `man-pages` and `command-doc` write what manual.h generates.
#include <fmt/core.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/terminal/manual.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

Status write_pages(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return make_error(Code::kIo, fmt::format("cannot make {}: {}", directory, error.message()));
  for (const auto& [name, text] : man_pages(command_infos(), RT_VERSION)) {
    const std::string path = directory + "/" + name;
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) return errno_error("cannot write " + path, errno);
  }
  return {};
}

}  // namespace

int run_man_pages(const Words& words) {
  CommandLine line("man-pages", "Writes the man pages into a directory.");
  line.positional("DIR", true);
  if (auto code = line.parse(words)) return *code;
  set_program_name("rayctl");
  return finish(write_pages(line.get("DIR")));
}

int run_command_doc(const Words& words) {
  CommandLine line("command-doc", "Prints docs/cli.md.");
  if (auto code = line.parse(words)) return *code;
  set_program_name("rayctl");
  print("{}", command_markdown(command_infos()));
  return kExitOk;
}

}  // namespace rt::cli
