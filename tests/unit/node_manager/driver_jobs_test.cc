// DriverJobs: drivers that register, and leave before or after the head has answered.
#include "daemons/node_manager/core/driver_jobs.h"

#include <gtest/gtest.h>

namespace rt::node {
namespace {

class DriverJobsTest : public testing::Test {
 protected:
  static proto::JobInfo info(const JobId& job) {
    proto::JobInfo info;
    info.set_job_id(job.binary());
    return info;
  }
  int listed() const {
    proto::RegisterNodeRequest request;
    jobs.fill(&request);
    return request.live_jobs_size();
  }

  const JobId job = job_id_from_int(7);
  DriverJobs jobs;
};

TEST_F(DriverJobsTest, AJobIsFinishedWhenItsDriverLeaves) {
  jobs.ask(1);
  EXPECT_TRUE(jobs.asks(1));
  EXPECT_EQ(listed(), 0);
  EXPECT_TRUE(jobs.answered(1, job).is_nil());
  EXPECT_FALSE(jobs.asks(1));
  jobs.joined(1, info(job));
  EXPECT_EQ(listed(), 1);
  EXPECT_EQ(jobs.left(1), job);
  EXPECT_EQ(listed(), 0);
  EXPECT_TRUE(jobs.left(1).is_nil()) << "once";
}

TEST_F(DriverJobsTest, AJobWhoseDriverDidNotWaitForItIsFinishedAtOnce) {
  jobs.ask(1);
  EXPECT_TRUE(jobs.left(1).is_nil()) << "nobody knows yet which job it is";
  EXPECT_EQ(jobs.answered(1, job), job);
  EXPECT_TRUE(jobs.left(1).is_nil());
}

TEST_F(DriverJobsTest, ARefusedDriverMayAskAgain) {
  jobs.ask(1);
  EXPECT_TRUE(jobs.answered(1, JobId::nil()).is_nil());
  EXPECT_FALSE(jobs.asks(1));
  jobs.ask(1);
  EXPECT_TRUE(jobs.answered(1, job).is_nil());
}

TEST_F(DriverJobsTest, ADriverOfAJobThatTheHeadKnowsJoinsWithoutAsking) {
  jobs.joined(2, info(job));
  EXPECT_EQ(jobs.left(1), JobId::nil()) << "the connection of somebody else";
  EXPECT_EQ(jobs.left(2), job);
}

}  // namespace
}  // namespace rt::node
