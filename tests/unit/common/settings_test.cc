// Settings from flags, the environment and a file, and the table that describes them.
#include "common/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/config/misspelt_variables.h"

namespace rt {
namespace {

using ::testing::HasSubstr;

// Writes a JSON file of settings and sets environment variables; both are gone when the test ends.
class SettingsTest : public ::testing::Test {
 protected:
  ~SettingsTest() override {
    for (const auto& name : environment_) unsetenv(name.c_str());
    std::filesystem::remove(path_);
  }
  const std::string& write(const std::string& json) {
    std::ofstream(path_) << json;
    return path_;
  }
  void set_environment(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    environment_.push_back(name);
  }
  std::string error_of(const std::string& path,
                       const std::map<std::string, std::string>& flags = {}) {
    auto settings = load_settings(path, flags);
    if (settings) return "no error";
    EXPECT_EQ(settings.error().code, Code::kInvalid);
    return settings.error().message;
  }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("settings-" + std::to_string(getpid()) + ".json"))
          .string();
  std::vector<std::string> environment_;
};

TEST_F(SettingsTest, MisspeltVariablesAreNamedWithTheNearestSettingIfThereIsOne) {
  EXPECT_THAT(misspelt_variables(), ::testing::IsEmpty());
  // A setting, one of Ray's names, and variables of other programs.
  for (const char* name : {"RAY_node_timeout_ms", "RAY_gcs_rpc_server_reconnect_timeout_s",
                           "RAY_ADDRESS", "RAY_TRAIN_ENABLE_V2", "RAY_SERVE_node_timout", "RAY_",
                           "RAY_worker_faulthandler", "RAY_MY_VARIABLE", "RAYnode_timout_ms"})
    set_environment(name, "1");
  EXPECT_THAT(misspelt_variables(), ::testing::IsEmpty());
  set_environment("RAY_node_timout_ms", "1");
  set_environment("RAY_Node_Timeout_MS", "1");
  set_environment("RAY_worker_register_timeout_secnods", "1");
  set_environment("RAY_foo_bar_ms", "1");
  EXPECT_THAT(misspelt_variables(),
              ::testing::ElementsAre(
                  "the environment variable RAY_Node_Timeout_MS has no effect: no setting has this "
                  "name, and the nearest one is RAY_node_timeout_ms",
                  "the environment variable RAY_foo_bar_ms has no effect: no setting has this name "
                  "(docs/configuration.md lists them)",
                  "the environment variable RAY_node_timout_ms has no effect: no setting has this "
                  "name, and the nearest one is RAY_node_timeout_ms",
                  "the environment variable RAY_worker_register_timeout_secnods has no effect: no "
                  "setting has this name, and the nearest one is "
                  "RAY_worker_register_timeout_seconds"));
}

TEST_F(SettingsTest, DefaultsComeFromTheTable) {
  auto settings = load_settings("", {});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->max_inline_bytes, 102400);
  EXPECT_EQ(settings->prestart_workers, -1);
  EXPECT_EQ(settings->scheduler_spread_threshold, 0.5);
  EXPECT_EQ(settings->log_level, "info");
}

TEST_F(SettingsTest, FlagsWinOverEnvironmentOverFile) {
  const auto& path = write(
      R"({"max_workers": 5, "node_timeout_ms": 400, "log_level": "error", "scheduler_spread_threshold": 0.25})");
  set_environment("RAY_max_workers", "50");
  set_environment("RAY_node_timeout_ms", "500");
  auto settings = load_settings(path, {{"node-timeout-ms", "600"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->max_workers, 50);
  EXPECT_EQ(settings->node_timeout_ms, 600);
  EXPECT_EQ(settings->log_level, "error");
  EXPECT_EQ(settings->scheduler_spread_threshold, 0.25);
}

TEST_F(SettingsTest, ErrorsNameTheSourceTheSettingAndWhatItAccepts) {
  EXPECT_THAT(
      error_of("", {{"max_workers", "-3"}}),
      AllOf(HasSubstr("--max-workers"), HasSubstr("-3"), HasSubstr("whole number from 1 ")));
  EXPECT_THAT(error_of("", {{"prestart_workers", "-2"}}), HasSubstr("whole number from -1"));
  EXPECT_THAT(error_of("", {{"max_workers", "1e3"}}), HasSubstr("1e3"));
  EXPECT_THAT(error_of("", {{"max_workers", "99999999999999999999"}}), HasSubstr("whole number"));
  EXPECT_THAT(error_of("", {{"scheduler_spread_threshold", "nan"}}), HasSubstr("a number from 0"));
  EXPECT_THAT(error_of("", {{"log_level", "loud"}}), HasSubstr("debug, info, warning or error"));
  EXPECT_THAT(error_of("", {{"no_such_thing", "1"}}), HasSubstr("no_such_thing"));
  set_environment("RAY_heartbeat_interval_ms", "soon");
  EXPECT_THAT(error_of(""), AllOf(HasSubstr("RAY_heartbeat_interval_ms"), HasSubstr("soon")));
}

TEST_F(SettingsTest, WhatWouldHangOrRefuseEverythingIsOutOfRange) {
  for (const char* name : {"max_workers", "worker_start_concurrency", "hello_timeout_ms",
                           "max_connections", "pipeline_max_tasks", "heartbeat_interval_ms"}) {
    EXPECT_THAT(error_of("", {{name, "0"}}), HasSubstr("whole number from ")) << name;
  }
  EXPECT_THAT(error_of("", {{"max_connections", "99999999999"}}), HasSubstr("to 1000000"));
  EXPECT_THAT(error_of("", {{"scheduler_spread_threshold", "1.5"}}),
              HasSubstr("a number from 0 to 1"));
}

TEST_F(SettingsTest, RaySettingNamesAreMappedOrIgnored) {
  Settings settings;
  EXPECT_TRUE(assign_setting(settings, "max_direct_call_object_size", "1000"));
  EXPECT_EQ(settings.max_inline_bytes, 1000);
  EXPECT_TRUE(assign_setting(settings, "gcs_rpc_server_reconnect_timeout_s", "5"));
  EXPECT_EQ(settings.head_reconnect_timeout_ms, 5000);
  EXPECT_TRUE(assign_setting(settings, "health_check_initial_delay_ms", "0"));
  EXPECT_TRUE(assign_setting(settings, "automatic_object_spilling_enabled", "false"));
  EXPECT_TRUE(assign_setting(settings, "kill_child_processes_on_worker_exit", "false"));
  EXPECT_FALSE(settings.kill_child_processes_on_worker_exit);
  Status refused = assign_setting(settings, "gcs_rpc_server_reconnect_timeout_s", "soon");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("gcs_rpc_server_reconnect_timeout_s"));

  std::vector<std::string> ignored;
  auto ours = translate_ray_names({{"idle_worker_killing_time_threshold_ms", "7"},
                                   {"health_check_period_ms", "1"},
                                   {"no_such_thing", "1"},
                                   {"worker_register_timeout_seconds", "2"},
                                   {"worker-register-timeout-ms", "3000"}},
                                  &ignored);
  ASSERT_TRUE(ours);
  EXPECT_EQ(*ours, (std::map<std::string, std::string>{{"idle_worker_timeout_ms", "7"},
                                                       {"no_such_thing", "1"},
                                                       {"worker_register_timeout_ms", "3000"}}));
  EXPECT_EQ(ignored, std::vector<std::string>{"health_check_period_ms"});
}

TEST(SettingTable, RaySettingNamesDoNotCollideWithOurs) {
  for (const auto& known : ray_name_table()) {
    bool ours = false, target = known.ours.empty();
    for (const auto& info : setting_table()) {
      ours |= info.name == known.name;
      target |= info.name == known.ours;
    }
    EXPECT_FALSE(ours) << known.name;
    EXPECT_TRUE(target) << known.ours;
  }
}

TEST_F(SettingsTest, BadFilesAreOneClearError) {
  EXPECT_THAT(error_of("/nonexistent/x.json"), HasSubstr("/nonexistent/x.json"));
  EXPECT_THAT(error_of("/dev/zero"), HasSubstr("/dev/zero: it has more than"));
  EXPECT_THAT(error_of(write("{\"max_workers\": ")), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(write("[1]")), HasSubstr("one JSON object"));
  EXPECT_THAT(error_of(write(R"({"max_wrokers": 1})")), HasSubstr("max_wrokers"));
  EXPECT_THAT(error_of(write(R"({"max_workers": [1]})")),
              HasSubstr("a number, true, false or a string"));
  EXPECT_THAT(error_of(write(R"({"max_workers": 1.5})")), HasSubstr("whole number"));
}

TEST(SettingTable, HasEverySettingOnceWithItsMeaning) {
  std::map<std::string, int> seen;
  for (const auto& info : setting_table()) {
    EXPECT_EQ(++seen[info.name], 1) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
    EXPECT_FALSE(info.unit.empty()) << info.name;
    EXPECT_EQ(info.environment, "RAY_" + info.name);
    Settings settings;
    EXPECT_TRUE(assign_setting(settings, info.name, info.default_value)) << info.name;
  }
  EXPECT_GT(seen.size(), 30u);
}

}  // namespace
}  // namespace rt
