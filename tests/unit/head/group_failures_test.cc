// Placement groups when nodes are lost, come back with other bundles, or the disk is full.
#include "tests/unit/head/group_fixture.h"

namespace rt::head {
namespace {

class GroupFailuresTest : public GroupTest {
 protected:
  void register_again(int n, const proto::RegisterNodeRequest& request) {
    core->connection_closed(conn_of(n), now);
    commit();
    ASSERT_TRUE(register_node(conn_of(n), request).ok());
    drop_node_pushes();
  }
  static proto::PrepareBundlesReply ok() {
    proto::PrepareBundlesReply reply;
    reply.set_ok(true);
    return reply;
  }
};

TEST_F(GroupFailuresTest, ANodeThatDiesBetweenPrepareAndRecordTakesAllBundlesBack) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  const GroupId id = id_of(request);
  add_group(request);
  auto first = take(sink.prepares), second = take(sink.prepares);
  if (first.node.node != node_id(1)) std::swap(first, second);
  reserved(first);
  answer_prepare(second, ok());
  EXPECT_EQ(group_state(id), proto::GROUP_PREPARED);
  // The record is on its way to the disk when the second node leaves.
  proto::UnregisterNodeRequest leave;
  leave.set_node_id(node_id(2).binary());
  ASSERT_TRUE(core->unregister_node(conn_of(2), leave, now));
  core->check_invariants(now);
  commit();
  EXPECT_EQ(group_state(id), proto::GROUP_PENDING);
  EXPECT_FALSE(on_disk(id));
  auto back = take(sink.returns);
  EXPECT_EQ(back.node.node, node_id(1));
  EXPECT_EQ(back.request.epoch(), first.request.epoch());
  drop_node_pushes();
  EXPECT_TRUE(news().empty());  // Nobody was told of a placement that did not last.
  add_node(3, {{"CPU", 1}});
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  sink.closes.clear();
  drop_pushes();
}

TEST_F(GroupFailuresTest, LostBundlesLookForOtherNodesAndTheRestStays) {
  for (int n : {1, 2, 3}) add_node(n, {{"CPU", 1}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  add_group(request);
  reserve_all();
  const GroupId id = id_of(request);
  const int64_t version = news().at(0).version();
  const int lost = node_of(id, 0) == 1 ? 1 : 0;  // Another node than that of the driver.
  const int gone = node_of(id, lost), stays = node_of(id, 1 - lost);
  lose_node(gone);
  auto told = news();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].state(), proto::GROUP_RESCHEDULING);
  EXPECT_EQ(told[0].bundle_nodes(lost), "");
  EXPECT_EQ(told[0].bundle_nodes(1 - lost), node_id(stays).binary());
  EXPECT_GT(told[0].version(), version);
  EXPECT_EQ(recorded(id).state(), proto::GROUP_RESCHEDULING);
  EXPECT_NE(
      core->view().cluster_status(now).recent_failures(0).find("1 placement group lost bundles"),
      std::string::npos);
  auto prepare = take(sink.prepares);
  ASSERT_EQ(prepare.request.bundles_size(), 1);
  EXPECT_EQ(prepare.request.bundles(0).index(), lost);
  EXPECT_NE(prepare.node.node, node_id(stays));  // STRICT_SPREAD still holds.
  reserved(prepare);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(node_of(id, 1 - lost), stays);
  EXPECT_NE(group(id).info.bundle_epochs(0), group(id).info.bundle_epochs(1));
  sink.closes.clear();
  drop_pushes();
}

TEST_F(GroupFailuresTest, AGroupThatLostEverythingIsRescheduled) {
  add_node(1, {{"CPU", 1}});
  add_node(2, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(
      group_request(job, {{{"CPU", 2}}, {{"CPU", 2}}}, proto::GroupSpec::STRICT_PACK));
  lose_node(2);
  EXPECT_EQ(group_state(id), proto::GROUP_RESCHEDULING);
  EXPECT_TRUE(sink.prepares.empty());
  EXPECT_TRUE(shown(id).infeasible());
  EXPECT_EQ(core->view().cluster_status(now).pending_groups_size(), 1);
  add_node(3, {{"CPU", 4}});
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(node_of(id, 0), 3);
  sink.closes.clear();
  drop_pushes();
}

TEST_F(GroupFailuresTest, ANodeComesBackWithTooFewBundles) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}}));
  const int64_t epoch = group(id).info.bundle_epochs(0);
  auto request = registration(1, {{"CPU", 4}});
  request.add_live_jobs()->set_job_id(job.binary());
  hold(request, id, 1, epoch);
  set_resources(request.mutable_node()->mutable_available(), {{"CPU", 3}});
  register_again(1, request);
  EXPECT_EQ(group_state(id), proto::GROUP_RESCHEDULING);
  auto prepare = take(sink.prepares);
  ASSERT_EQ(prepare.request.bundles_size(), 1);
  EXPECT_EQ(prepare.request.bundles(0).index(), 0);
  reserved(prepare);
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(core->view().cluster().find(node_id(1))->bundles_hold.get("CPU"), 2);
  drop_pushes();
}

TEST_F(GroupFailuresTest, ANodeComesBackWithTooManyBundles) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}}));
  auto removed = group_request(job, {{{"CPU", 1}}});
  created_group(removed);
  const int64_t epoch = group(id_of(removed)).info.bundle_epochs(0);
  remove_group(id_of(removed));
  sink.returns.clear();  // The connection broke before the requests arrived.
  auto request = holding(1);
  request.add_live_jobs()->set_job_id(job.binary());
  hold(request, id_of(removed), 0, epoch);
  // The node held a bundle of an earlier attempt, which it gave up for this one.
  hold(request, id, 0, epoch - 1000);
  request.add_bundles()->set_group_id("garbage");
  register_again(1, request);
  std::set<std::pair<std::string, int>> back;
  while (!sink.returns.empty()) {
    auto returned = take(sink.returns);
    back.insert({returned.request.group_id(), returned.request.why().kind()});
    EXPECT_NE(returned.request.epoch(), group(id).info.bundle_epochs(0));
  }
  EXPECT_EQ(back, (std::set<std::pair<std::string, int>>{
                      {id_of(removed).binary(), proto::ExitInfo::GROUP_REMOVED},
                      {id.binary(), proto::ExitInfo::UNKNOWN}}));
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupFailuresTest, ARequestThatWasLostWithTheConnectionIsRepeated) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}});
  add_group(request);
  auto lost = take(sink.prepares);
  answer_prepare(lost, make_error(Code::kUnavailable, "the connection broke"));
  auto back = holding(1);
  back.add_live_jobs()->set_job_id(job.binary());
  register_again(1, back);
  auto repeated = take(sink.prepares);
  EXPECT_EQ(repeated.request.epoch(), lost.request.epoch());
  reserved(repeated);
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  drop_pushes();
}

TEST_F(GroupFailuresTest, AnAnswerThatWasLostWithTheConnectionIsReadFromTheRegistration) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  auto request = group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}});
  add_group(request);
  auto lost = take(sink.prepares);
  auto back = registration(1, {{"CPU", 4}});
  back.add_live_jobs()->set_job_id(job.binary());
  set_resources(back.mutable_node()->mutable_available(), {{"CPU", 2}});
  for (int i : {0, 1}) hold(back, id_of(request), i, lost.request.epoch());
  register_again(1, back);
  EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
  EXPECT_EQ(Cluster::free_now(*core->view().cluster().find(node_id(1))).get("CPU"), 2);
  drop_pushes();
}

TEST_F(GroupFailuresTest, NothingIsPromisedWhileTheRecordCannotBeWritten) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto request = group_request(job, {{{"CPU", 1}}});
  const GroupId id = id_of(request);
  EXPECT_TRUE(add_group(request).ok());
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_PREPARED);
  EXPECT_NE(why(id).find("no space left"), std::string::npos);
  EXPECT_EQ(node_of(id, 0), 0);
  advance_alive(3 * options.settings.storage_retry_ms, {1});
  EXPECT_EQ(group_state(id), proto::GROUP_PREPARED);
  EXPECT_TRUE(news().empty());
  disk.failure.reset();
  advance_alive(options.settings.storage_retry_ms + 500, {1});
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ(recorded(id).state(), proto::GROUP_CREATED);
  EXPECT_EQ(news_states(), std::vector{proto::GROUP_CREATED});
}

TEST_F(GroupFailuresTest, ANamedGroupThatCannotBeStoredFailsAndItsSubscribersAreTold) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto request = group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name");
  auto answer = add_group(request);
  EXPECT_EQ(answer.error().code, Code::kOutOfDisk);
  auto told = news();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].state(), proto::GROUP_REMOVED);
  EXPECT_NE(told[0].why().find("no space left"), std::string::npos);
  disk.failure.reset();
  advance_alive(2'500, {1});
  EXPECT_FALSE(on_disk(id_of(request)));
  // The name is free.
  created_group(group_request(job, {{{"CPU", 1}}}, proto::GroupSpec::PACK, "name"));
}

TEST_F(GroupFailuresTest, ARemovalIsAnsweredWhenTheDiskHasTakenIt) {
  add_node(1, {{"CPU", 4}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}}));
  disk.failure = make_error(Code::kOutOfDisk, "no space left");
  auto removed = remove_group(id), repeated = remove_group(id);
  EXPECT_FALSE(removed.answered() || repeated.answered());
  EXPECT_EQ(group_state(id), proto::GROUP_REMOVED);  // The tasks in the group end nevertheless.
  take(sink.returns);
  EXPECT_EQ(news_states(), std::vector{proto::GROUP_REMOVED});
  disk.failure.reset();
  advance_alive(2 * options.settings.storage_retry_ms, {1});
  EXPECT_TRUE(removed.ok() && repeated.ok());
  EXPECT_FALSE(on_disk(id));
  drop_pushes();
}

TEST_F(GroupFailuresTest, AnAttemptBeginsAnewWhenMoreBundlesAreLost) {
  for (int n : {1, 2, 3}) add_node(n, {{"CPU", 1}});
  JobId job = add_job();
  GroupId id = created_group(group_request(job, {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}}));
  drop_pushes();
  lose_node(2);
  EXPECT_EQ(group_state(id), proto::GROUP_RESCHEDULING);
  add_node(4, {{"CPU", 1}});
  auto prepare = take(sink.prepares);
  lose_node(3);
  EXPECT_EQ(take(sink.returns).request.epoch(), prepare.request.epoch());
  add_node(5, {{"CPU", 1}});
  reserve_all();
  EXPECT_EQ(group_state(id), proto::GROUP_CREATED);
  EXPECT_EQ((std::set{node_of(id, 0), node_of(id, 1), node_of(id, 2)}), (std::set{1, 4, 5}));
  sink.closes.clear();
  drop_pushes();
}

// Random events from a seed. Nodes keep a table of bundles as node-managers do. In the end every
// group that was not removed is created, on nodes that hold its bundles, and no node holds others.
class GroupChaosTest : public GroupTest {
 protected:
  struct FakeNode {
    ConnId conn = 0;
    // The epoch, and the CPUs.
    std::map<std::pair<GroupId, int>, std::pair<int64_t, double>> bundles;
    std::map<GroupId, int64_t> fences;
    double cpus = 4;
    double used() const {
      double sum = 0;
      for (const auto& [key, bundle] : bundles) sum += bundle.second;
      return sum;
    }
  };

  void join(int n) {
    FakeNode& node = nodes[n];
    node.conn = ++last_conn;
    auto request = registration(n, {{"CPU", node.cpus}});
    set_resources(request.mutable_node()->mutable_available(), {{"CPU", node.cpus - node.used()}});
    for (const auto& [key, bundle] : node.bundles)
      hold(request, key.first, key.second, bundle.first);
    if (n == 1) request.add_live_jobs()->set_job_id(job.binary());
    if (!register_node(node.conn, request).ok()) nodes.erase(n);
  }
  FakeNode* at(const NodeLink& link) {
    auto found = nodes.find(link.node.data()[0]);
    return found == nodes.end() || found->second.conn != link.conn ? nullptr : &found->second;
  }
  void serve(Rng& rng) {
    while (!sink.returns.empty() || !sink.prepares.empty()) {
      while (!sink.returns.empty()) {
        auto back = take(sink.returns);
        FakeNode* node = at(back.node);
        if (!node) continue;
        const GroupId id = GroupId::from_binary(back.request.group_id());
        auto& fence = node->fences[id];
        fence = std::max(fence, back.request.epoch());
        std::erase_if(node->bundles, [&](const auto& held) {
          const auto& indexes = back.request.indexes();
          return held.first.first == id && held.second.first <= back.request.epoch() &&
                 (indexes.empty() ||
                  std::find(indexes.begin(), indexes.end(), held.first.second) != indexes.end());
        });
      }
      if (!sink.prepares.empty()) serve(take(sink.prepares), rng);
    }
    for (const auto& push : sink.pushes) {
      for (const auto& info : push.event.groups()) {
        auto& version = versions[{push.conn, info.spec().group_id()}];
        ASSERT_GT(info.version(), version);
        version = info.version();
      }
    }
    sink.pushes.clear();
    sink.closes.clear();
  }
  void serve(const RecordingSink::Prepare& prepare, Rng& rng) {
    const GroupId id = GroupId::from_binary(prepare.request.group_id());
    FakeNode* node = at(prepare.node);
    if (!node) return answer_prepare(prepare, make_error(Code::kUnavailable, "lost"));
    proto::PrepareBundlesReply reply;
    double wanted = 0;
    for (const auto& bundle : prepare.request.bundles()) {
      wanted += ResourceSet::from_proto(bundle.resources()).get("CPU");
      auto older = node->bundles.find({id, bundle.index()});
      if (older != node->bundles.end() && older->second.first <= prepare.request.epoch())
        node->bundles.erase(older);
    }
    reply.set_ok(!rng.chance(0.15) && node->used() + wanted <= node->cpus &&
                 node->fences[id] < prepare.request.epoch());
    if (reply.ok()) {
      for (const auto& bundle : prepare.request.bundles())
        node->bundles[{id, bundle.index()}] = {
            prepare.request.epoch(), ResourceSet::from_proto(bundle.resources()).get("CPU")};
    }
    if (rng.chance(0.05)) {  // The connection breaks before the answer arrives.
      core->connection_closed(node->conn, now);
      commit();
      node->conn = 0;
      join(prepare.node.node.data()[0]);
      return;
    }
    answer_prepare(prepare, reply);
    if (!rng.chance(0.3)) commit();
  }
  void heartbeat() {
    for (auto& [n, node] : nodes) {
      if (!node.conn) continue;
      proto::ResourceReport report;
      report.set_node_id(node_id(n).binary());
      report.set_incarnation(++incarnation);
      set_resources(report.mutable_available(), {{"CPU", node.cpus - node.used()}});
      (void)core->report_resources(node.conn, report, now);
      commit();
    }
  }
  void disturb(Rng& rng) {
    const int n = std::next(nodes.begin(), static_cast<long>(rng.below(nodes.size())))->first;
    switch (rng.below(8)) {
      case 0:
        if (nodes.size() < 6) join(++last_node);
        break;
      case 1:
        if (n > 1 && rng.chance(0.5)) {  // The node never comes back.
          core->connection_closed(nodes[n].conn, now);
          nodes.erase(n);
        }
        break;
      case 2:
        core->connection_closed(nodes[n].conn, now);
        commit();
        if (rng.chance(0.2)) nodes[n].bundles.clear();
        join(n);
        break;
      case 3:
      case 4: {
        std::vector<Amounts> bundles(1 + rng.below(3));
        for (Amounts& amounts : bundles) amounts = {{"CPU", 1 + static_cast<double>(rng.below(2))}};
        auto request =
            group_request(job, bundles, static_cast<proto::GroupSpec::Strategy>(rng.below(2)),
                          rng.chance(0.3) ? "name " + std::to_string(wanted.size()) : "");
        auto answer = add_group(request, 0);
        if (answer.ok()) wanted.insert_or_assign(id_of(request), request);
        break;
      }
      case 5:
        if (!wanted.empty() && rng.chance(0.7)) {
          auto chosen = std::next(wanted.begin(), static_cast<long>(rng.below(wanted.size())));
          (void)remove_group(chosen->first);
          wanted.erase(chosen);
        }
        break;
      case 6:
        if (rng.chance(0.2)) disk.failure = make_error(Code::kOutOfDisk, "full");
        if (rng.chance(0.5)) disk.failure.reset();
        break;
      case 7:
        if (!rng.chance(0.2) || disk.failure) break;
        // Failed writes are repeated before the crash.
        advance(2 * options.settings.storage_retry_ms);
        serve(rng);
        restart();
        for (auto& [id, node] : nodes) node.conn = 0;
        std::vector<int> all;
        for (auto& [id, node] : nodes) all.push_back(id);
        for (int id : all) join(id);
        // Owners register groups again which they have not seen created.
        for (const auto& [id, request] : wanted) EXPECT_TRUE(add_group(request, 0).ok());
        break;
    }
    commit();
  }

  std::map<int, FakeNode> nodes;
  std::map<GroupId, proto::RegisterGroupRequest> wanted;
  std::map<std::pair<ConnId, std::string>, int64_t> versions;
  JobId job;
  int last_node = 1;
  ConnId last_conn = 1000;
};

TEST_F(GroupChaosTest, GroupsSurviveRandomFaults) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng chance(seed);
    disk = MemoryStorage::Disk();
    nodes.clear();
    wanted.clear();
    last_node = 1;
    restart();
    join(1);
    job = add_job(1);
    for (int step = 0; step < 300; ++step) {
      disturb(chance);
      serve(chance);
      if (HasFatalFailure()) return;
      advance(static_cast<int64_t>(chance.below(200)));
      serve(chance);
      if (step % 2 == 0) heartbeat();
      core->check_invariants(now);
    }
    disk.failure.reset();
    while (nodes.size() < 60) join(++last_node);  // Now there is room for all groups.
    Rng calm(1);
    for (int i = 0; i < 80; ++i) {
      advance(500);
      serve(calm);
      heartbeat();
      serve(calm);
      commit();
    }
    std::map<std::pair<GroupId, int>, int> held;
    for (const auto& [n, node] : nodes) {
      for (const auto& [key, bundle] : node.bundles) {
        EXPECT_EQ(held.count(key), 0u) << "two nodes hold one bundle";
        held[key] = n;
      }
    }
    size_t bundles = 0;
    for (const auto& [id, request] : wanted) {
      ASSERT_EQ(group_state(id), proto::GROUP_CREATED) << why(id);
      EXPECT_EQ(recorded(id).state(), proto::GROUP_CREATED);
      for (int i = 0; i < request.spec().bundles_size(); ++i, ++bundles)
        EXPECT_EQ(held.at({id, i}), node_of(id, i));
    }
    EXPECT_EQ(held.size(), bundles);  // No node reserves a bundle that nobody knows.
    size_t living = 0;                // Groups besides the records of removals.
    for (const auto& [key, value] : disk.tables["groups"])
      living += recorded(GroupId::from_binary(key)).state() != proto::GROUP_REMOVED;
    EXPECT_EQ(living, wanted.size());
  }
  drop_pushes();
}

}  // namespace
}  // namespace rt::head
