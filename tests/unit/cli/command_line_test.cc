// Parsing of command lines, and the checks of the options of `rayctl start`.
#include "cli/terminal/command_line.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands/start_options.h"
#include "cli/jobs/job_common.h"

namespace rt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string start_error(const Words& words) {
  CommandLine line("start", "");
  declare_start_options(line);
  if (line.parse(words)) return "usage";
  auto options = start_options(line);
  return options ? "none" : options.error().message;
}

TEST(CommandLine, LongTextIsEchoedInPart) {
  EXPECT_EQ(excerpt("short"), "short");
  EXPECT_EQ(excerpt(std::string(100'000, 'x')), std::string(200, 'x') + "... (100000 bytes)");
  std::string umlauts = "x";
  for (int i = 0; i < 200; ++i) umlauts += "\u00e4";
  EXPECT_EQ(excerpt(umlauts), umlauts.substr(0, 199) + "... (401 bytes)")
      << "no character is cut in two";
  EXPECT_LT(start_error({"--head", "--resources", std::string(100'000, '[')}).size(), 500u);
}

TEST(CommandLine, OptionsPositionsAndTheRest) {
  CommandLine line("x", "");
  line.option("size,s", "N", "").flag("fast", "").positional("ID", true).rest("COMMAND");
  ASSERT_FALSE(line.parse({"-s", "3", "name", "--fast", "--", "python", "-c", "--fast"}));
  EXPECT_EQ(line.get("ID"), "name");
  EXPECT_EQ(line.rest_words(), (Words{"python", "-c", "--fast"}));
  EXPECT_EQ(**line.whole("size", 0, 5), 3);
  auto bad = line.whole("size", 0, 2);
  EXPECT_EQ(bad.error().message, "--size is '3': it takes a whole number from 0 to 2");
}

TEST(CommandLine, WrongUsageIsExitCode2) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(CommandLine("x", "").parse({"--nope"}), kExitUsage);
  EXPECT_EQ(CommandLine("x", "").parse({"stray"}), kExitUsage);
  EXPECT_EQ(CommandLine("x", "").option("abcdef", "N", "").parse({"--abc", "1"}), kExitUsage)
      << "no guessing";
  EXPECT_EQ(CommandLine("x", "").positional("ID", true).parse({}), kExitUsage);
  EXPECT_EQ(CommandLine("x", "").format_option().parse({"--format", "xml"}), kExitUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("no such option: --nope"), HasSubstr("ID is missing"),
                    HasSubstr("table, json or yaml")));
}

TEST(StartOptions, NumbersNameTheFlagTheValueAndWhatItTakes) {
  EXPECT_EQ(start_error({"--head", "--num-cpus", "-1"}),
            "--num-cpus is '-1': it takes a whole number from 0 to 1000000");
  EXPECT_THAT(start_error({"--head", "--num-cpus=two"}), HasSubstr("'two'"));
  EXPECT_THAT(start_error({"--head", "--num-gpus=0.5"}), HasSubstr("whole number"));
  EXPECT_THAT(start_error({"--head", "--port=99999"}), HasSubstr("0 to 65535"));
}

TEST(StartOptions, JsonIsChecked) {
  EXPECT_THAT(start_error({"--head", "--resources", "{bad"}),
              AllOf(HasSubstr("--resources is '{bad'"), HasSubstr("JSON object of numbers")));
  EXPECT_THAT(start_error({"--head", "--resources", "[1]"}), HasSubstr("JSON object of numbers"));
  EXPECT_THAT(start_error({"--head", "--resources", R"({"a": "1"})"}),
              HasSubstr("JSON object of numbers"));
  EXPECT_THAT(start_error({"--head", "--labels", "novalue"}), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(start_error({"--head", "--system-config", "7"}),
              HasSubstr("JSON object of settings"));
}

TEST(StartOptions, CombinationsThatMakeNoSense) {
  EXPECT_THAT(start_error({}), HasSubstr("--head to start a cluster, or --address"));
  EXPECT_THAT(start_error({"--head", "--address=x:1"}), HasSubstr("one of them"));
  EXPECT_THAT(start_error({"--address=x:1", "--port=1"}), HasSubstr("--port is for --head only"));
  EXPECT_THAT(start_error({"--head", "--autoscaling-config=x"}), HasSubstr("not available"));
}

TEST(StartOptions, PointlessFlagsGetANotice) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(start_error({"--head", "--min-worker-port=10002", "--redis-password", "x",
                         "--disable-usage-stats"}),
            "none");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("--min-worker-port has no effect"), HasSubstr("--redis-password"),
                    HasSubstr("--disable-usage-stats")));
}

TEST(StartOptions, ValuesArrive) {
  CommandLine line("start", "");
  declare_start_options(line);
  ASSERT_FALSE(line.parse({"--address=h:1", "--num-cpus=3", "--resources", R"({"a": 1.5})",
                           "--labels", "zone=east,rack=7", "--memory", "1000000"}));
  auto options = start_options(line);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->address, "h:1");
  EXPECT_EQ(options->resources.num_cpus, 3.0);
  EXPECT_EQ(options->resources.custom.at("a"), 1.5);
  EXPECT_EQ(options->labels.at("rack"), "7");
  EXPECT_EQ(options->resources.memory, 1000000);
}

TEST(StartOptions, ANameThatIsGivenTwiceIsRefused) {
  for (const char* option : {"resources", "labels", "system-config"}) {
    CommandLine line("start", "");
    declare_start_options(line);
    ASSERT_FALSE(
        line.parse({"--head", fmt::format("--{}", option), R"({"a": 1, "b": 2, "a": 3})"}));
    auto options = start_options(line);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().message, fmt::format("--{} names 'a' twice: give it once", option));
  }
}

TEST(StartOptions, ANameWithinAValueIsNoneOfTheObject) {
  CommandLine line("start", "");
  declare_start_options(line);
  ASSERT_FALSE(line.parse({"--head", "--system-config", R"({"a": {"b": 1}, "b": 2})"}));
  auto options = start_options(line);
  ASSERT_FALSE(options);
  EXPECT_THAT(options.error().message, HasSubstr("it takes a JSON object of settings"));
}

TEST(Timeout, IsCheckedBeforeAnythingIsAsked) {
  for (const char* value : {"0", "-1", "x", "86401", "1.5"}) {
    CommandLine line("job status", "");
    line.timeout_option();
    testing::internal::CaptureStderr();
    EXPECT_EQ(line.parse({fmt::format("--timeout={}", value)}), kExitUsage) << value;
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(fmt::format("--timeout is '{}': it takes a whole number", value)));
  }
}

TEST(Timeout, OneThatIsGivenIsThatOfTheConnectionAsWell) {
  CommandLine given("list", ""), plain("list", "");
  given.timeout_option();
  plain.timeout_option();
  ASSERT_FALSE(given.parse({"--timeout=20"}));
  ASSERT_FALSE(plain.parse({}));
  EXPECT_EQ(*connect_us(given), 20'000'000);
  EXPECT_EQ(*connect_us(plain), kConnectTimeoutUs);
  EXPECT_EQ(*timeout_us(plain), 30'000'000);
}

TEST(Jobs, WordsAreQuotedForTheShell) {
  EXPECT_EQ(shell_joined({"python", "a b.py", "it's", ""}), R"(python 'a b.py' 'it'"'"'s' '')");
}

TEST(Jobs, ExitCodesAreTheEntrypoints) {
  proto::SubmittedJob job;
  job.set_status("FAILED");
  job.set_exit_code(7);
  EXPECT_EQ(exit_code_of(job), 7);
  job.set_exit_code(-9);
  EXPECT_EQ(exit_code_of(job), 137);
  job.set_exit_code(0);
  EXPECT_EQ(exit_code_of(job), 1);
  job.set_status("STOPPED");
  EXPECT_EQ(exit_code_of(job), 0);
}

}  // namespace
}  // namespace rt::cli
