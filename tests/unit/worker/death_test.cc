// The texts of the errors that tasks and actors get from the runtime itself.
#include "worker/core/death.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/proto/node_manager.pb.h"

namespace rt::worker {
namespace {

proto::FunctionDescriptor function(const std::string& name, const std::string& class_name = "") {
  proto::FunctionDescriptor descriptor;
  descriptor.set_name(name);
  descriptor.set_class_name(class_name);
  return descriptor;
}

proto::ErrorValue raised() {
  proto::ErrorValue error;
  error.set_code(kTaskRaised);
  error.set_function_name("bad");
  error.set_proctitle("ray::bad");
  error.set_pid(7);
  error.set_ip("1.2.3.4");
  error.set_traceback("  File \"x.py\", line 1, in bad\nValueError: boom");
  error.set_message("ValueError: boom");
  error.set_cause("pickled");
  return error;
}

TEST(Death, ATaskWhoseArgumentRaisedSaysSoAndKeepsTheCause) {
  auto once = dependency_error(raised(),
                               {function("outer.<locals>.after"), TaskId::nil(), "", 8, "5.6.7.8"});
  EXPECT_EQ(once.function_name(), "after");
  EXPECT_EQ(once.proctitle(), "ray::after");
  EXPECT_EQ(once.pid(), 8);
  EXPECT_EQ(once.cause(), "pickled");
  EXPECT_EQ(once.message(), "ValueError: boom");
  EXPECT_EQ(once.traceback(),
            "  At least one of the input arguments for this task could not be computed:\n"
            "ray.exceptions.RayTaskError: \x1b[36mray::bad()\x1b[39m (pid=7, ip=1.2.3.4)\n"
            "  File \"x.py\", line 1, in bad\nValueError: boom");
  std::string actor(ActorId::kSize, 'a');
  auto twice = dependency_error(once, {function("m", "A"), TaskId::nil(), actor, 9, "5.6.7.8"});
  EXPECT_EQ(twice.function_name(), "A.m");
  EXPECT_EQ(twice.actor_id(), actor);
  EXPECT_NE(twice.traceback().find("ray::after()\x1b[39m (pid=8, ip=5.6.7.8)\n  At least one of"),
            std::string::npos);
}

TEST(Death, ATaskIsNamedByItsOptionOrItsFunction) {
  proto::TaskTemplate spec;
  *spec.mutable_function() = function("outer.<locals>.f");
  spec.mutable_function()->set_module("script");
  for (const char* name : {"", "script.outer.<locals>.f", "__main__.outer.<locals>.f"}) {
    spec.set_name(name);
    EXPECT_EQ(task_name(spec), "f");
  }
  spec.set_name("other.f");
  EXPECT_EQ(task_name(spec), "other.f");
  *spec.mutable_function() = function("m", "A");
  spec.set_name("m");
  EXPECT_EQ(task_name(spec), "A.m");
  spec.set_name("mine");
  EXPECT_EQ(task_name(spec), "mine");
}

TEST(Death, LongChainsOfFailedArgumentsDoNotGrowForEver) {
  auto error = raised();
  for (int i = 0; i < 5000; ++i)
    error = dependency_error(error, {function("after"), TaskId::nil(), "", 8, "5.6.7.8"});
  EXPECT_LT(error.traceback().size(), 70'000u);
  EXPECT_NE(error.traceback().find("ValueError: boom"), std::string::npos);
}

TEST(Death, AnErrorOfTheSystemBecomesTheCause) {
  proto::ErrorValue error = system_error(Code::kWorkerCrashed, "its worker died");
  auto once = dependency_error(error, {function("after"), TaskId::nil(), "", 8, "5.6.7.8"});
  EXPECT_EQ(once.code(), kTaskRaised);
  EXPECT_EQ(once.cause_class(), "ray.exceptions.WorkerCrashedError");
  EXPECT_EQ(once.traceback(),
            "  At least one of the input arguments for this task could not be "
            "computed:\nray.exceptions.WorkerCrashedError: its worker died");
  auto cause = decode_value(as_bytes(once.cause()));
  ASSERT_TRUE(cause);
  ASSERT_TRUE(decode_error(cause->inband));
  EXPECT_EQ(decode_error(cause->inband)->SerializeAsString(), error.SerializeAsString());
  auto twice = dependency_error(once, {function("last"), TaskId::nil(), "", 9, "5.6.7.8"});
  EXPECT_EQ(twice.cause(), once.cause());
  EXPECT_NE(twice.traceback().find("ray.exceptions.RayTaskError: \x1b[36mray::after()"),
            std::string::npos);
}

TEST(Death, HowAProcessEndedIsSaidOnce) {
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::EXITED);
  info.set_exit_code(3);
  info.set_pid(7);
  EXPECT_EQ(describe_exit(info), "it exited with code 3.");
  info.set_message("worker process 7 on node 1.2.3.4 exited with code 3");
  info.set_log_tail("a line\nanother");
  EXPECT_EQ(describe_exit(info),
            "worker process 7 on node 1.2.3.4 exited with code 3.\nLast lines of its log:\na "
            "line\nanother");
  Template function;
  function.spec.set_name("f");
  Task task;
  task.function = &function;
  EXPECT_EQ(worker_death_error(task, info).message(),
            "The worker died unexpectedly while executing this task. Task f failed because worker "
            "process 7 on node "
            "1.2.3.4 exited with code 3.\nLast lines of its log:\na line\nanother");
}

TEST(Death, WhatEndedWithItsPlacementGroupSaysSo) {
  proto::ExitInfo exit;
  exit.set_kind(proto::ExitInfo::GROUP_REMOVED);
  EXPECT_EQ(describe_exit(exit), "its placement group was removed.");
  proto::ActorInfo info;
  info.mutable_spec()->mutable_creation()->set_group_id(std::string(18, '\x11'));
  EXPECT_EQ(actor_death_error(nullptr, ActorId::nil(), &info, exit).message(),
            "Could not create the actor because its associated placement group was removed.\n"
            "Required placement group " +
                GroupId::from_binary(info.spec().creation().group_id()).hex() + " is removed.");
  exit.set_pid(7);
  auto error = actor_death_error(nullptr, ActorId::nil(), nullptr, exit);
  EXPECT_EQ(error.code(), static_cast<int>(Code::kActorDied));
  EXPECT_NE(error.message().find("The actor is dead because its placement group was removed."),
            std::string::npos);
}

TEST(Death, OnlyWhatNeverRanIsRecordedAsWithoutItsGroup) {
  Template function;
  function.spec.set_name("f");
  Task task;
  task.function = &function;
  proto::ErrorValue waited = group_removed_error(task);
  EXPECT_EQ(error_type_name(waited), "TASK_PLACEMENT_GROUP_REMOVED");
  EXPECT_EQ(
      dependency_error(waited, {function.spec.function(), TaskId::nil(), "", 8, ""}).cause_class(),
      "ray.exceptions.TaskPlacementGroupRemoved");
  proto::ExitInfo exit = waited.exit();
  EXPECT_EQ(error_type_name(actor_death_error(nullptr, ActorId::nil(), nullptr, exit)),
            "ACTOR_UNSCHEDULABLE_ERROR");
  exit.set_pid(7);
  EXPECT_EQ(error_type_name(actor_death_error(nullptr, ActorId::nil(), nullptr, exit)),
            "ACTOR_DIED");
  EXPECT_EQ(error_type_name(worker_death_error(task, exit)), "WORKER_DIED");
}

// The head may refuse to tell of an actor, for example at the bound on subscriptions.
TEST(Death, AnActorOfWhichNothingIsKnownHasTheClassOfTheCall) {
  Template method;
  method.spec.mutable_function()->set_class_name("Counter");
  Task call;
  call.function = &method;
  proto::ActorInfo nothing;
  const auto said = [&](const Task* task) {
    return actor_death_error(task, ActorId::nil(), &nothing, proto::ExitInfo()).message();
  };
  EXPECT_NE(said(&call).find("\tclass_name: Counter\n"), std::string::npos) << said(&call);
  EXPECT_EQ(said(nullptr).find("class_name"), std::string::npos) << said(nullptr);
}

TEST(Death, AnActorThatLeftSaysWhatItWasAndWhy) {
  proto::ActorInfo info;
  info.mutable_spec()->set_class_name("A");
  info.mutable_spec()->set_name("n");
  info.set_pid(7);
  proto::ExitInfo exit;
  exit.set_kind(proto::ExitInfo::INTENTIONAL);
  exit.set_message("exit_actor() was called");
  auto error = actor_death_error(nullptr, ActorId::nil(), &info, exit);
  EXPECT_EQ(
      error.message(),
      "The actor died unexpectedly before finishing this task.\n\tclass_name: A\n\tactor_id: " +
          ActorId::nil().hex() +
          "\n\tpid: 7\n\tname: n\nThe actor is dead because it exited intentionally: exit_actor() "
          "was called.");
}

TEST(Death, AProcessEndsAsItsNodeSaysAndWithANodeThatDoesNotAnswer) {
  Rng rng(1);
  const NodeId elsewhere = NodeId::random(rng);
  proto::WorkerAddress process;
  process.set_worker_id("worker");
  process.set_ip("1.2.3.4");
  proto::WorkerExitReply told;
  told.mutable_info()->set_kind(proto::ExitInfo::OWNER_DIED);
  told.mutable_info()->set_ip("5.6.7.8");

  const proto::ExitInfo known = exit_as_told(told, process, elsewhere);
  EXPECT_EQ(known.kind(), proto::ExitInfo::OWNER_DIED);
  EXPECT_EQ(known.ip(), "5.6.7.8");
  EXPECT_EQ(known.worker_id(), "worker");

  const auto refused = make_error(Code::kUnavailable, "refused");
  const proto::ExitInfo lost = exit_as_told(refused, process, elsewhere);
  EXPECT_EQ(lost.kind(), proto::ExitInfo::NODE_DIED);
  EXPECT_EQ(lost.node_id(), elsewhere.binary());
  EXPECT_EQ(lost.ip(), "1.2.3.4");

  const proto::ExitInfo here = exit_as_told(refused, process, NodeId());
  EXPECT_NE(here.kind(), proto::ExitInfo::NODE_DIED) << "this process would have ended with it";
  EXPECT_EQ(here.message(), "refused");
}

}  // namespace
}  // namespace rt::worker
