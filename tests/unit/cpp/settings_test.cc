// How ray::Init() combines its configuration, the program's flags and the environment.
#include "settings.h"

#include <gtest/gtest.h>
#include <ray/api/exceptions.h>

#include <cstdlib>

namespace {

using namespace ray;
using namespace ray::internal;

InitOptions with_flags(const RayConfig& config, std::vector<std::string> flags) {
  flags.insert(flags.begin(), "program");
  std::vector<char*> argv;
  for (auto& flag : flags) argv.push_back(flag.data());
  return init_options(config, static_cast<int>(argv.size()), argv.data());
}

TEST(Settings, DefaultsAreARandomNamespaceAndTheProgramsDirectory) {
  InitOptions options = init_options(RayConfig(), 0, nullptr);
  EXPECT_EQ(options.ray_namespace.size(), 56u);
  EXPECT_NE(options.ray_namespace, init_options(RayConfig(), 0, nullptr).ray_namespace);
  ASSERT_EQ(options.code_search_path.size(), 1u);
  EXPECT_EQ(options.code_search_path[0].front(), '/');
}

TEST(Settings, FlagsWinOverTheConfiguration) {
  RayConfig config;
  config.address = "1.2.3.4:1";
  config.code_search_path = {"/x"};
  config.head_args = {"--num-cpus=1"};
  InitOptions options =
      with_flags(config, {"--ray_address=5.6.7.8:2", "--ray_code_search_path", "/a:/b/../c",
                          "--ray_head_args=--num-gpus 2", "--ray_default_actor_lifetime=DETACHED",
                          "-ray_job_namespace=mine", "input.txt"});
  EXPECT_EQ(options.address, "5.6.7.8:2");
  EXPECT_EQ(options.code_search_path, (std::vector<std::string>{"/a", "/c"}));
  EXPECT_EQ(options.head_args, (std::vector<std::string>{"--num-cpus=1", "--num-gpus", "2"}));
  EXPECT_TRUE(options.detached_actors);
  EXPECT_EQ(options.ray_namespace, "mine");
}

TEST(SettingsDeathTest, UnknownFlagsEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with_flags(RayConfig(), {"--colour=red"}), testing::ExitedWithCode(1),
              "Unknown command line flag 'colour'");
  EXPECT_EXIT(with_flags(RayConfig(), {"--ray_address"}), testing::ExitedWithCode(1),
              "Missing the value");
  EXPECT_EXIT(with_flags(RayConfig(), {"--ray_runtime_env_hash=x"}), testing::ExitedWithCode(1),
              "Illegal value");
  EXPECT_DEATH(with_flags(RayConfig(), {"--ray_default_actor_lifetime=forever"}),
               "detached or non_detached");
}

TEST(Settings, VariablesAreARuntimeEnvironment) {
  EXPECT_EQ(
      with_flags(RayConfig(), {"--ray_runtime_env={\"env_vars\": {\"A\": \"b\"}}"}).runtime_env,
      R"({"env_vars":{"A":"b"}})");
  EXPECT_EQ(with_flags(RayConfig(), {"--ray_runtime_env={}"}).runtime_env, "");
  EXPECT_THROW(with_flags(RayConfig(), {"--ray_runtime_env=rubbish"}), RayException);
}

TEST(Settings, AbsentFeaturesAreNamed) {
  EXPECT_THROW(with_flags(RayConfig(), {"--ray_runtime_env={\"pip\": []}"}), RayException);
}

TEST(Settings, TheJobsConfigurationComesFromTheEnvironment) {
  auto with_job = [](const char* json) {
    setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", json, 1);
    struct Unset {
      ~Unset() { unsetenv("RAY_JOB_CONFIG_JSON_ENV_VAR"); }
    } unset;
    return init_options(RayConfig(), 0, nullptr);
  };
  EXPECT_EQ(with_job(R"({"runtime_env": {}, "metadata": {"job_submission_id": "raysubmit_1"}})")
                .metadata["job_submission_id"],
            "raysubmit_1");
  EXPECT_THROW(with_job("nonsense"), RayException);
  EXPECT_THROW(with_job(R"({"metadata": {}})"), RayException);
  EXPECT_THROW(with_job(R"({"runtime_env": {"pip": ["x"]}, "metadata": {}})"), RayException);
}

}  // namespace
