#include "cli/terminal/manual.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/terminal/help_text.h"

namespace rt::cli {
namespace {

struct Meaning {
  const char* what;
  const char* text;
};

constexpr Meaning kEnvironment[] = {
    {"RAY_ADDRESS",
     "HOST:PORT of the cluster's head, for commands without --address; for job commands also "
     "http://HOST:PORT"},
    {"RAY_API_SERVER_ADDRESS",
     "HOST:PORT or http://HOST:PORT for job commands: goes before RAY_ADDRESS, and that before "
     "--address there"},
    {"RAY_JOB_HEADERS", "for job commands over HTTP: a JSON object of headers"},
    {"RAY_TMPDIR", "root of the sessions (default /tmp/ray)"},
    {"RAY_AUTH_TOKEN", "the cluster's token"},
    {"RAY_AUTH_TOKEN_PATH", "a file that has it (default ~/.ray/auth_token)"},
    {"RAY_AUTH_MODE", "disabled: no token"},
    {"NO_COLOR", "any value: no colours"},
    {"FORCE_COLOR",
     "any value but 0: colours also where the output is no terminal; CLICOLOR_FORCE has "
     "the same effect"},
};

constexpr Meaning kExitCodes[] = {
    {"0", "success"},
    {"1", "failure: one line on standard error says what failed, why, and what to do"},
    {"2",
     "wrong usage: unknown command or option, invalid value, too many or too few words. An invalid "
     "address, a JSON value of `start` that cannot be parsed, and a filter without = exit with 1, "
     "as in Ray."},
};
constexpr char kJobExit[] = "`job submit` that follows its job exits as the program did.";

// Escapes what roff would interpret: '\', '-', and a '.' or '\'' at the beginning of a line.
std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string page_name(const std::string& command) {
  std::string name = "rayctl" + (command.empty() ? "" : "-" + command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string header(const std::string& page, const std::string& brief, const std::string& version) {
  return fmt::format(
      ".TH \"{}\" 1 \"\" \"rayctl {}\" \"Cluster commands\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
      upper_case(roff(page)), version, roff(page), roff(brief));
}

template <class Meanings>
std::string meanings(const char* title, const Meanings& all) {
  std::string out = fmt::format(".SH {}\n", title);
  for (const Meaning& one : all)
    out += fmt::format(".TP\n.B {}\n{}\n", roff(one.what), roff(one.text));
  return out;
}

std::string option_roff(const OptionInfo& option) {
  std::string out = ".TP\n";
  if (!option.letter.empty()) out += "\\fB\\-" + option.letter + "\\fR, ";
  out += "\\fB\\-\\-" + roff(option.name) + "\\fR";
  if (!option.value_name.empty()) out += " \\fI" + roff(option.value_name) + "\\fR";
  return out + "\n" + roff(option.help) + "\n";
}

std::string examples_roff(const std::vector<Example>& examples) {
  if (examples.empty()) return "";
  std::string out = ".SH EXAMPLES\n";
  for (const Example& one : examples)
    out += fmt::format(".TP\n.B rayctl {}\n{}\n", roff(one.line), roff(one.what));
  return out;
}

std::string command_page(const CommandInfo& info, const std::vector<CommandInfo>& all,
                         const std::string& version) {
  std::string out = header(page_name(info.name), info.brief, version);
  out += fmt::format(".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}\n", roff(usage_line(info)),
                     roff(info.summary));
  std::string options, inner;
  for (const auto& option : info.options) {
    if (!option.hidden) options += option_roff(option);
  }
  if (!options.empty()) out += ".SH OPTIONS\n" + options;
  for (const auto& other : all) {
    if (other.name.starts_with(info.name + " "))
      inner += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(page_name(other.name)), roff(other.brief));
  }
  if (!inner.empty()) out += ".SH COMMANDS\n" + inner;
  out += examples_roff(examples_of(info.name));
  out += ".SH EXIT STATUS\n";
  for (const Meaning& one : kExitCodes)
    out += fmt::format(".TP\n.B {}\n{}\n", one.what, roff(one.text));
  if (info.name == "job submit")
    out += std::string(".PP\n") + roff("With the job followed: as the program did.") + "\n";
  return out + ".SH SEE ALSO\n.BR rayctl (1)\n";
}

std::string main_page(const std::vector<CommandInfo>& all, const std::string& version) {
  std::string out = header("rayctl", "starts, watches and uses a cluster of machines", version);
  out += ".SH SYNOPSIS\n.B rayctl\n.I COMMAND\n[options]\n.br\n.B rayctl help\n.I COMMAND\n";
  out += ".SH DESCRIPTION\n" +
         roff(
             "A cluster is a head and nodes that joined it. This program starts both, and asks "
             "them what runs, what waits and what went wrong. It is also installed as ray.") +
         "\n";
  out += ".SH COMMANDS\n";
  for (const auto& info : all) {
    if (info.name.find(' ') == std::string::npos)
      out += fmt::format(".TP\n.BR {} (1)\n{}\n", roff(page_name(info.name)), roff(info.brief));
  }
  out += meanings("ENVIRONMENT", kEnvironment) + meanings("EXIT STATUS", kExitCodes) + ".PP\n" +
         roff(kJobExit) + "\n";
  out += ".SH FILES\n.TP\n.I ~/.ray/auth_token\n" +
         roff("the token of the clusters this user starts and joins") + "\n.TP\n.I /tmp/ray\n" +
         roff("sessions: sockets, logs, state") + "\n";
  return out;
}

std::string table_cell(std::string text) {
  for (size_t bar = text.find('|'); bar != std::string::npos; bar = text.find('|', bar + 2))
    text.insert(bar, "\\");
  return text;
}

}  // namespace

std::map<std::string, std::string> man_pages(const std::vector<CommandInfo>& all,
                                             const std::string& version) {
  std::map<std::string, std::string> pages = {{"rayctl.1", main_page(all, version)},
                                              {"ray.1", ".so man1/rayctl.1\n"}};
  for (const auto& info : all)
    pages[page_name(info.name) + ".1"] = command_page(info, all, version);
  return pages;
}

std::string command_markdown(const std::vector<CommandInfo>& all) {
  std::string out =
      "# Commands\n\nMade by `make docs` from the option tables of the program, as are `rayctl "
      "help`, completion and the man pages. `ray` is another name of `rayctl`.\n\n| command | "
      "|\n|---|---|\n";
  for (const auto& info : all) {
    std::string anchor = "rayctl-" + info.name;
    std::replace(anchor.begin(), anchor.end(), ' ', '-');
    out += fmt::format("| [`{}`](#{}) | {} |\n", info.name, anchor, info.brief);
  }
  out += "\n## Exit codes\n\n| code | |\n|---|---|\n";
  for (const Meaning& one : kExitCodes) out += fmt::format("| {} | {} |\n", one.what, one.text);
  out += fmt::format("\n{}\n\n## Environment\n\n| variable | |\n|---|---|\n", kJobExit);
  for (const Meaning& one : kEnvironment) out += fmt::format("| `{}` | {} |\n", one.what, one.text);
  for (const auto& info : all) {
    out += fmt::format("\n## rayctl {}\n\n{}\n\n```\n{}\n```\n", info.name, info.summary,
                       usage_line(info));
    std::string options;
    for (const auto& option : info.options) {
      if (option.hidden || option.name == "help") continue;
      std::string letter = option.letter.empty() ? "" : "`-" + option.letter + "`, ";
      std::string value = option.value_name.empty() ? "" : " " + option.value_name;
      options += fmt::format("| {}`--{}{}` | {} |\n", letter, option.name, table_cell(value),
                             table_cell(option.help));
    }
    if (!options.empty()) out += "\n| option | |\n|---|---|\n" + options;
    std::string lines;
    for (const Example& one : examples_of(info.name))
      lines += fmt::format("rayctl {}    # {}\n", one.line, one.what);
    if (!lines.empty()) out += "\n```\n" + lines + "```\n";
  }
  return out;
}

}  // namespace rt::cli
