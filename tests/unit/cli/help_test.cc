// Everything that is made from the tables of options: help, completion, manual pages and
// suggestions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/command_line.h"
#include "cli/terminal/completion.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/manual.h"
#include "cli/terminal/style.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

CommandInfo info_of(CommandLine& line, const std::string& brief) {
  CommandInfo info = *describe([&] { return *line.parse({"whatever", "--is", "typed"}); });
  info.brief = brief;
  return info;
}

std::vector<CommandInfo> some_commands() {
  CommandLine list("list", "Lists things."), submit("job submit", "Runs a program.");
  list.format_option("default|json")
      .option("filter,f", "KEY=VALUE", "only these")
      .flag("detail", "all columns")
      .hidden_option("secret")
      .positional("RESOURCE", true, "actors|nodes");
  submit.flag("no-wait", "return at once").rest("COMMAND");
  CommandInfo job{.name = "job", .brief = "programs", .summary = "programs", .is_group = true};
  return {info_of(list, "things"), job, info_of(submit, "a program")};
}

Words offered(const Words& words) {
  Words out;
  for (const auto& candidate : complete(some_commands(), words)) out.push_back(candidate.word);
  return out;
}

TEST(Suggestions, SuggestsOnlySimilarNames) {
  const Words known = {"status", "start", "stop", "list", "drain-node"};
  EXPECT_EQ(suggested_word("statsu", known), "status");
  EXPECT_EQ(suggested_word("sttart", known), "start");
  EXPECT_EQ(suggested_word("drian-nod", known), "drain-node");
  EXPECT_EQ(suggested_word("drain", known), "drain-node");
  EXPECT_EQ(suggested_word("drain", {"train", "drain-node"}), "drain-node");
  EXPECT_EQ(suggested_word("drian", {"train", "drain-node"}), "train");
  EXPECT_EQ(suggested_word("frobnicate", known), "");
  EXPECT_EQ(suggested_word("-", known), "");
  EXPECT_EQ(suggested_word(std::string(100'000, 's'), known), "");
  EXPECT_EQ(did_you_mean("lsit", known), "; did you mean list?");
}

TEST(Suggestions, AMistypedOptionIsOneLine) {
  testing::internal::CaptureStderr();
  CommandLine line("list", "");
  EXPECT_EQ(line.option("filter,f", "X", "").hidden_option("filtre").parse({"--filtr=x"}),
            kExitUsage);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "Error: no such option: --filtr; did you mean --filter? Try 'rayctl list --help'.\n");
}

TEST(Completion, CommandsThenOptionsThenValues) {
  EXPECT_THAT(offered({""}), ElementsAre("list", "job"));
  EXPECT_THAT(offered({"l"}), ElementsAre("list"));
  EXPECT_THAT(offered({"job", ""}), ElementsAre("submit"));
  EXPECT_THAT(offered({"help", "job", "s"}), ElementsAre("submit"));
  EXPECT_THAT(offered({"list", ""}), ElementsAre("actors", "nodes"));
  EXPECT_THAT(offered({"list", "--filter", "a=b", "a"}), ElementsAre("actors"));
  EXPECT_THAT(offered({"list", "actors", ""}), ElementsAre());
  EXPECT_THAT(offered({"list", "--"}), ElementsAre("--help", "--format", "--filter", "--detail"));
  EXPECT_THAT(offered({"list", "--format", ""}), ElementsAre("default", "json"));
  EXPECT_THAT(offered({"list", "--format=j"}), ElementsAre("--format=json"));
  EXPECT_THAT(offered({"job", "submit", "--n"}), ElementsAre("--no-wait"));
  EXPECT_THAT(offered({"nothing", ""}), ElementsAre());
  EXPECT_THAT(offered({"list", "--no-such=", ""}), ElementsAre("actors", "nodes"));
}

TEST(Completion, AScriptForEachShellNamesTheProgram) {
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(
        *completion_script(shell, "ray"),
        AllOf(HasSubstr("__complete"), HasSubstr("`ray completion "), Not(HasSubstr("PROGRAM"))))
        << shell;
  EXPECT_FALSE(completion_script("csh", "ray"));
}

TEST(HelpText, OptionsExamplesAndNothingHidden) {
  auto all = some_commands();
  std::string text = help_text(all[0], {{"list", "list actors", "shows actors"}});
  EXPECT_THAT(text,
              AllOf(HasSubstr("Usage: rayctl list [options] RESOURCE\n\nLists things.\n"),
                    HasSubstr("  -f, --filter KEY=VALUE"), HasSubstr("      --detail"),
                    HasSubstr("rayctl list actors\n      shows actors"), Not(HasSubstr("secret"))));
  EXPECT_THAT(commands_text("", all),
              AllOf(HasSubstr("  list  things\n"), HasSubstr("  job   programs\n"),
                    Not(HasSubstr("submit"))));
  EXPECT_THAT(commands_text("job", all),
              AllOf(HasSubstr("Usage: rayctl job COMMAND"), HasSubstr("  submit  a program\n")));
}

TEST(HelpText, TheUsageLineShowsOptionsThatMustBeGiven) {
  CommandLine line("leave", "Leaves.");
  line.choice("why-so", "idle|ill", "the cause").required().option("note", "TEXT", "").required();
  line.option("node-id", "ID", "");
  EXPECT_EQ(usage_line(info_of(line, "")), "rayctl leave [options] --why-so WHY-SO --note TEXT");
  auto complaint = [&](const Words& words) {
    testing::internal::CaptureStderr();
    CommandLine again = line;
    EXPECT_EQ(again.parse(words), kExitUsage);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(complaint({}), HasSubstr("Error: --why-so and --note are missing. Try"));
  EXPECT_THAT(complaint({"--why-so=ill"}), HasSubstr("Error: --note is missing. Try"));
  EXPECT_THAT(complaint({"nope"}),
              HasSubstr("more words than this command takes: it takes only options, such as "
                        "--node-id ID. Try"));
}

TEST(HelpText, LongTextIsWrapped) {
  EXPECT_EQ(wrapped("one two three four", 2, 9), "one two\n  three\n  four");
}

TEST(Manual, APageForEachCommandAndMarkdownOfAll) {
  auto pages = man_pages(some_commands(), "1.2.3");
  EXPECT_THAT(pages["rayctl-list.1"],
              AllOf(HasSubstr(".TH \"RAYCTL\\-LIST\" 1 \"\" \"rayctl 1.2.3\""),
                    HasSubstr("\\fB\\-f\\fR, \\fB\\-\\-filter\\fR \\fIKEY=VALUE\\fR"),
                    Not(HasSubstr("secret"))));
  EXPECT_THAT(pages["rayctl-job.1"], HasSubstr(".BR rayctl\\-job\\-submit (1)"));
  EXPECT_EQ(pages["ray.1"], ".so man1/rayctl.1\n");
  EXPECT_EQ(pages.size(), 5u);
  EXPECT_THAT(command_markdown(some_commands()),
              AllOf(HasSubstr("\n## rayctl job submit\n"),
                    HasSubstr("| `--format default\\|json` |"), Not(HasSubstr("secret"))));
}

TEST(Style, ColoursAreTheUsersChoice) {
  set_colours("true");
  EXPECT_EQ(painted("x", Ink::kBad), "\x1b[1;31mx\x1b[0m");
  EXPECT_EQ(columns_of(painted("\u00e4b", Ink::kBad)), 2u);
  set_colours("false");
  EXPECT_EQ(painted("x", Ink::kBad), "x");
  set_colours("auto");
  setenv("FORCE_COLOR", "1", 1);
  EXPECT_NE(painted("x", Ink::kBad), "x");
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(painted("x", Ink::kBad), "x");
  unsetenv("NO_COLOR");
  unsetenv("FORCE_COLOR");
}

}  // namespace
}  // namespace rt::cli
