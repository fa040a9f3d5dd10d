// The head changes while it is asked: answers that are joined have to be of one moment.
#include <gtest/gtest.h>

#include <thread>

#include "common/base/ids.h"
#include "common/net/asio_loop.h"
#include "common/rpc/server.h"
#include "observability/state/query.h"
#include "observability/state/train_runs.h"

namespace rt::state {
namespace {

using Moments = std::vector<proto::GetSnapshotReply>;

// A head whose every answer is true at its moment. The next moment begins with each answer, and the
// last one lasts.
class ChangingHead : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  explicit ChangingHead(Moments moments) : moments_(std::move(moments)) {}

  void GetSnapshot(Controller*, const proto::GetSnapshotRequest*, proto::GetSnapshotReply* reply,
                   Closure* done) override {
    tell(done, reply, [](const auto& now) { return now; });
  }
  void GetJobs(Controller*, const proto::Empty*, proto::GetJobsReply* reply,
               Closure* done) override {
    tell(done, reply, [](const auto& now) { return now.drivers(); });
  }
  void ListSubmittedJobs(Controller*, const proto::Empty*, proto::SubmittedJobsReply* reply,
                         Closure* done) override {
    tell(done, reply, [](const auto& now) { return now.submitted_jobs(); });
  }
  void GetNodes(Controller*, const proto::GetNodesRequest*, proto::GetNodesReply* reply,
                Closure* done) override {
    tell(done, reply, [](const auto& now) { return now.nodes(); });
  }
  void ListGroups(Controller*, const proto::Empty*, proto::ListGroupsReply* reply,
                  Closure* done) override {
    tell(done, reply, [](const auto& now) { return now.groups(); });
  }

 private:
  template <class Reply, class Part>
  void tell(Closure* done, Reply* reply, Part part) {
    *reply = part(moments_[at_]);
    at_ = std::min(at_ + 1, moments_.size() - 1);
    done->Run();
  }

  const Moments moments_;
  size_t at_ = 0;
};

// Returns what `question(cluster)` says of a cluster with this head.
template <class Question>
std::string told_by(proto::HeadService& head, Question question) {
  net::AsioLoop loop;
  auto server = std::make_unique<rpc::Server>(
      loop,
      rpc::ServerOptions{.identity = {"head", "", "c", "", ""},
                         .on_connection = [&head](const auto& it) { it->add_service(&head); }});
  RT_CHECK(static_cast<bool>(server->listen(net::Address::tcp("127.0.0.1", 0))));
  const Cluster cluster{"127.0.0.1:" + std::to_string(server->port()), ""};
  std::thread thread([&loop] { loop.run(); });
  Result<Answer> answer = question(cluster);
  loop.post([&] {
    server.reset();
    loop.stop();
  });
  thread.join();
  return answer ? answer->json.dump() : answer.error().message;
}

// Returns what `rayctl list RESOURCE --detail` shows of such a head.
std::string listed(const std::string& resource, const Moments& moments) {
  ChangingHead head(moments);
  Query query{resource};
  query.detail = true;
  return told_by(head, [&](const Cluster& cluster) { return list(cluster, query); });
}

// Whichever change comes while the question is asked, its answer is that of the moment before or
// after.
void expect_one_moment(const std::string& resource, const Moments& moments) {
  for (size_t i = 0; i + 1 < moments.size(); ++i) {
    const std::string before = listed(resource, {moments[i]}),
                      after = listed(resource, {moments[i + 1]}),
                      between = listed(resource, {moments[i], moments[i + 1]});
    EXPECT_NE(before, after);
    EXPECT_TRUE(between == before || between == after)
        << i << ": " << between << "\n  before: " << before << "\n  after:  " << after;
  }
}

TEST(Snapshot, AJobThatComesOrEndsWhileJobsAreListedIsWhollyThereOrNot) {
  Moments moments(1);
  auto next = [&moments]() -> proto::GetSnapshotReply& {
    return moments.emplace_back(proto::GetSnapshotReply(moments.back()));
  };
  proto::SubmittedJob& job = *next().mutable_submitted_jobs()->add_jobs();
  job.set_submission_id("s");
  job.set_status("PENDING");
  proto::GetSnapshotReply& runs = next();
  runs.mutable_submitted_jobs()->mutable_jobs(0)->set_status("RUNNING");
  runs.mutable_submitted_jobs()->mutable_jobs(0)->set_job_id(job_id_from_int(1).binary());
  proto::JobInfo& driver = *runs.mutable_drivers()->add_jobs();
  driver.set_job_id(job_id_from_int(1).binary());
  driver.mutable_config()->set_submission_id("s");
  next().mutable_drivers()->mutable_jobs(0)->set_finished(true);
  moments.back().mutable_submitted_jobs()->mutable_jobs(0)->set_status("SUCCEEDED");
  // The submitted job is deleted, and another driver begins.
  next().clear_submitted_jobs();
  moments.back().mutable_drivers()->add_jobs()->set_job_id(job_id_from_int(2).binary());
  expect_one_moment("jobs", moments);
}

TEST(Snapshot, AGroupIsListedWithTheNodesOfItsMoment) {
  Moments moments(1);
  proto::Node& node = *moments[0].mutable_nodes()->add_nodes();
  node.set_node_id(std::string(28, 'n'));
  node.set_alive(true);
  (*node.mutable_labels())["rack"] = "r7";
  proto::GroupInfo& group = *moments[0].mutable_groups()->add_groups();
  group.mutable_spec()->set_group_id(std::string(18, 'g'));
  group.mutable_spec()->add_bundles();
  (*group.mutable_spec()->mutable_topology_strategy())["rack"] = "STRICT_PACK";
  group.set_state(proto::GROUP_CREATED);
  group.add_bundle_nodes(node.node_id());
  moments.push_back(moments[0]);
  moments[1].clear_nodes();
  moments[1].mutable_groups()->mutable_groups(0)->set_state(proto::GROUP_RESCHEDULING);
  expect_one_moment("placement_groups", moments);
}

// A training run that ends after the first answer: its controller records the end, and then ends
// itself.
class EndingRun : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  explicit EndingRun(std::string last_status) : last_status_(std::move(last_status)) {}

  void KvGet(Controller*, const proto::KvGetRequest*, proto::KvGetReply* reply,
             Closure* done) override {
    Json record = {{"id", "r"},
                   {"name", "digits"},
                   {"status", ended_ ? last_status_ : "RUNNING"},
                   {"controller_actor_id", std::string(2 * ActorId::kSize, 'a')},
                   {"attempts", Json::array()}};
    reply->set_found(true);
    reply->set_value(record.dump());
    answered(done);
  }
  void GetActor(Controller*, const proto::GetActorRequest*, proto::GetActorReply* reply,
                Closure* done) override {
    reply->set_found(true);
    reply->mutable_actor()->set_state(ended_ ? proto::ACTOR_DEAD : proto::ACTOR_ALIVE);
    answered(done);
  }

 private:
  void answered(Closure* done) {
    ended_ = true;
    done->Run();
  }

  const std::string last_status_;
  bool ended_ = false;
};

TEST(Snapshot, ATrainingRunThatEndsWhileItIsAskedForEndedAsItsControllerSays) {
  auto status = [](const std::string& last) {
    EndingRun head(last);
    const std::string run =
        told_by(head, [](const Cluster& cluster) { return train_run(cluster, "r", 10'000'000); });
    return Json::parse(run)["status"];
  };
  EXPECT_EQ(status("FINISHED"), "FINISHED");
  EXPECT_EQ(status("RUNNING"), "ABORTED") << "its controller ended without a word";
}

}  // namespace
}  // namespace rt::state
