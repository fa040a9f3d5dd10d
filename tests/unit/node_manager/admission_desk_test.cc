// AdmissionDesk: who waits, who is refused, and whose job is finished.
#include "daemons/node_manager/core/admission_desk.h"

#include "core_fixture.h"

namespace rt::node {
namespace {

class AdmissionDeskTest : public NodeCoreTest {
 protected:
  void TearDown() override {
    sink.spawns.clear();
    NodeCoreTest::TearDown();
  }

  const NodeCore& made() {
    make(2, 1);
    return *core;
  }
  // The refusal, or an empty text.
  std::string refusal(const AdmissionDesk::Applicant& applicant) {
    const auto entry = desk.ask(&applicant);
    return entry ? "" : entry.error().message;
  }
  static AdmissionDesk::Applicant local(OwnerId owner) { return {owner, true, {}}; }
  // The head's answer when it has begun this job.
  static Result<proto::AddJobReply> begun(const JobId& job) {
    proto::AddJobReply reply;
    reply.set_job_id(job.binary());
    return reply;
  }
  // A driver that has asked the head for a job.
  void ask_head(OwnerId driver) {
    const auto admitted = desk.admit_driver(driver, JobId::nil(), true);
    ASSERT_TRUE(admitted);
    ASSERT_EQ(*admitted, AdmissionDesk::Driver::kNeedsJob);
  }
  int listed() const {
    proto::RegisterNodeRequest request;
    desk.fill_jobs(&request);
    return request.live_jobs_size();
  }
  static proto::JobInfo info(const JobId& job) {
    proto::JobInfo info;
    info.set_job_id(job.binary());
    return info;
  }

  Rng rng{1};
  AdmissionDesk desk{made(), "10.0.0.1:6379"};
};

TEST_F(AdmissionDeskTest, WhoeverComesBeforeTheHeadWaits) {
  const AdmissionDesk::Applicant early = local(1);
  EXPECT_FALSE(desk.is_open());
  auto entry = desk.ask(&early);
  ASSERT_TRUE(entry);
  EXPECT_EQ(*entry, AdmissionDesk::Entry::kWaits);
  desk.open();
  EXPECT_TRUE(desk.is_open());
  entry = desk.ask(&early);
  ASSERT_TRUE(entry);
  EXPECT_EQ(*entry, AdmissionDesk::Entry::kGoesOn);
}

TEST_F(AdmissionDeskTest, NoMoreWaitThanTheBound) {
  for (size_t i = 0; i < AdmissionDesk::kMostWaiting; ++i) EXPECT_EQ(refusal(local(i + 1)), "");
  EXPECT_EQ(refusal(local(99'999)), "too many processes wait for this node to join its cluster");
  desk.open();
  EXPECT_EQ(refusal(local(99'999)), "");
}

TEST_F(AdmissionDeskTest, WhoIsRefused) {
  desk.open();
  EXPECT_TRUE(refusal({1, false, {}}).starts_with("workers and drivers can register only over"));
  EXPECT_EQ(refusal({1, true, WorkerId::random(rng)}),
            "this connection has registered a process already");
  ask_head(2);
  EXPECT_EQ(refusal(local(2)), "this connection has registered a process already");
  EXPECT_FALSE(desk.ask(nullptr)) << "its connection has closed";
  EXPECT_EQ(refusal(local(1)), "");
  desk.stop();
  EXPECT_EQ(refusal(local(1)), "the node-manager stops");
}

TEST_F(AdmissionDeskTest, AWorkerConnectsOnce) {
  const Status nobody = desk.admit_worker(WorkerId::nil());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::kInvalid);
  const WorkerId id = RecordingSink::take(sink.spawns).id;
  core->worker_spawned(id, 1, now());
  EXPECT_TRUE(desk.admit_worker(id));
  ASSERT_TRUE(core->worker_registered(id, 1, "/s", now()));
  const Status again = desk.admit_worker(id);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kAlreadyExists);
}

TEST_F(AdmissionDeskTest, ADriverWithoutAJobNeedsTheHead) {
  const auto away = desk.admit_driver(1, JobId::nil(), false);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, Code::kUnavailable);
  EXPECT_EQ(away.error().message,
            "the head at 10.0.0.1:6379 cannot be reached at the moment; try again");
  EXPECT_EQ(refusal(local(1)), "") << "it may try again";
  const auto named = desk.admit_driver(1, job(), false);
  ASSERT_TRUE(named);
  EXPECT_EQ(*named, AdmissionDesk::Driver::kJoins);
  ask_head(2);
}

TEST_F(AdmissionDeskTest, TheJobOfADriverIsFinishedOnceItLeaves) {
  ask_head(1);
  const AdmissionDesk::Answer answer = desk.head_answered(1, begun(job()));
  EXPECT_EQ(answer.join, job());
  EXPECT_TRUE(answer.finish.is_nil());
  EXPECT_FALSE(answer.refusal);
  EXPECT_EQ(listed(), 0);
  desk.driver_joined(1, info(job()));
  EXPECT_EQ(listed(), 1);
  EXPECT_EQ(desk.left(1), job());
  EXPECT_EQ(listed(), 0);
  EXPECT_TRUE(desk.left(1).is_nil());
}

TEST_F(AdmissionDeskTest, ADriverThatDoesNotWaitForItsJobDoesNotJoin) {
  ask_head(1);
  EXPECT_TRUE(desk.left(1).is_nil());
  const AdmissionDesk::Answer answer = desk.head_answered(1, begun(job()));
  EXPECT_TRUE(answer.join.is_nil());
  EXPECT_EQ(answer.finish, job());
  ask_head(2);
  EXPECT_EQ(desk.head_answered(2, begun(job(2))).join, job(2));
  EXPECT_EQ(desk.left(2), job(2)) << "before it has joined";
}

TEST_F(AdmissionDeskTest, ARefusalOfTheHeadIsTheDriversAnswer) {
  ask_head(1);
  AdmissionDesk::Answer answer = desk.head_answered(1, make_error(Code::kTimeout, "late"));
  ASSERT_TRUE(answer.refusal);
  EXPECT_EQ(answer.refusal->code, Code::kTimeout);
  EXPECT_TRUE(answer.join.is_nil());
  EXPECT_TRUE(answer.finish.is_nil());
  ask_head(1);  // It tries again.
  answer = desk.head_answered(1, begun(JobId::nil()));
  ASSERT_TRUE(answer.refusal);
  EXPECT_EQ(answer.refusal->code, Code::kProtocol);
}

TEST_F(AdmissionDeskTest, OnlyAJobThatWasBegunForARefusedDriverEnds) {
  ask_head(1);
  EXPECT_EQ(desk.head_answered(1, begun(job())).join, job());
  EXPECT_EQ(desk.driver_refused(1), job());
  EXPECT_TRUE(desk.driver_refused(1).is_nil()) << "once";
  ASSERT_TRUE(desk.admit_driver(2, job(2), true));
  EXPECT_TRUE(desk.driver_refused(2).is_nil()) << "it may be another driver's";
  ask_head(3);
  desk.head_answered(3, begun(job(3)));
  desk.driver_joined(3, info(job(3)));
  EXPECT_TRUE(desk.driver_refused(3).is_nil());
}

}  // namespace
}  // namespace rt::node
