// Runtime environments at their owner: how a child's is merged with its parent's, and the errors
// of those that cannot be made.
#include "worker/core/runtime_env.h"

#include <gtest/gtest.h>

#include "worker/core/death.h"

namespace rt::worker {
namespace {

TEST(RuntimeEnv, AChildsFieldsReplaceTheParents) {
  EXPECT_EQ(merge_runtime_env("", ""), "");
  EXPECT_EQ(merge_runtime_env(R"({"a":1})", ""), R"({"a":1})");
  EXPECT_EQ(merge_runtime_env("", R"({"b": 2, "a": 1})"), R"({"a":1,"b":2})");
  EXPECT_EQ(merge_runtime_env(R"({"pip":{"packages":["x","y"]},"working_dir":"gcs://p.zip"})",
                              R"({"pip": {"packages": ["z"]}})"),
            R"({"pip":{"packages":["z"]},"working_dir":"gcs://p.zip"})");
}

TEST(RuntimeEnv, VariablesAreMerged) {
  EXPECT_EQ(merge_runtime_env(R"({"env_vars":{"A":"job","B":"job"}})",
                              R"({"env_vars":{"B":"task","C":"task"}})"),
            R"({"env_vars":{"A":"job","B":"task","C":"task"}})");
}

TEST(RuntimeEnv, WhatIsNoJsonIsLeftToTheWorker) {
  EXPECT_EQ(merge_runtime_env(R"({"a":1})", "rubbish"), "rubbish");
  EXPECT_EQ(merge_runtime_env("rubbish", R"({"a":1})"), R"({"a":1})");
}

TEST(RuntimeEnv, AnActorWhoseEnvironmentFailedSaysThat) {
  proto::ExitInfo exit;
  exit.set_kind(proto::ExitInfo::INIT_FAILED);
  exit.set_message("no such package");
  EXPECT_EQ(actor_death_error(nullptr, ActorId::nil(), nullptr, exit).code(),
            static_cast<int>(Code::kActorDied));
  exit.set_exit_code(static_cast<int>(Code::kRuntimeEnvSetup));
  auto error = actor_death_error(nullptr, ActorId::nil(), nullptr, exit);
  EXPECT_EQ(error.code(), static_cast<int>(Code::kRuntimeEnvSetup));
  EXPECT_NE(error.message().find("no such package"), std::string::npos);
}

}  // namespace
}  // namespace rt::worker
