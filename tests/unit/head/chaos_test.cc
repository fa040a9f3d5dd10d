// Random events from a seed: nodes come, go and report wrong resources, actors die, disks fill up,
// the head restarts. The invariants hold after every event, no node ever gets more actors than it
// has resources for, and in the end an actor is dead only if it was killed.
#include "common/base/rng.h"
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class ChaosTest : public HeadTest {
 protected:
  struct FakeNode {
    ConnId conn = 0;
    double cpus = 4;
    std::map<ActorId, std::pair<int64_t, int>> actors;  // The epoch and the worker of each.
  };

  void join(Rng& rng) {
    int n = ++last_node;
    nodes[n].conn = ++last_conn;
    auto request = registration(n, {{"CPU", nodes[n].cpus}});
    request.mutable_node()->set_port(7000 + static_cast<int>(rng.below(100)));
    register_node(nodes[n].conn, request);
  }
  void rejoin(int n) {
    FakeNode& node = nodes[n];
    node.conn = ++last_conn;
    auto request = registration(n, {{"CPU", node.cpus}});
    set_resources(request.mutable_node()->mutable_available(),
                  {{"CPU", node.cpus - static_cast<double>(node.actors.size())}});
    for (const auto& [id, life] : node.actors) {
      auto* live = request.add_live_actors();
      live->mutable_spec()->set_actor_id(id.binary());
      live->set_state(proto::ACTOR_ALIVE);
      live->set_epoch(life.first);
      live->mutable_address()->set_worker_id(worker_id(life.second).binary());
    }
    if (n == 1) request.add_live_jobs()->set_job_id(job.binary());
    if (!register_node(node.conn, request).ok()) nodes.erase(n);
  }
  int node_of(const NodeId& id) {
    for (const auto& [n, node] : nodes) {
      if (node_id(n) == id) return n;
    }
    return 0;
  }
  void serve(Rng& rng) {
    while (!sink.kills.empty()) {
      auto kill = take(sink.kills);
      if (int n = node_of(kill.node.node))
        nodes[n].actors.erase(ActorId::from_binary(kill.request.actor_id()));
    }
    while (!sink.creates.empty()) {
      auto create = take(sink.creates);
      int n = node_of(create.node.node);
      if (!n || nodes[n].conn != create.node.conn) {
        answer_create(create, make_error(Code::kUnavailable, "lost"));
        continue;
      }
      FakeNode& node = nodes[n];
      ActorId id = ActorId::from_binary(create.request.spec().actor_id());
      bool known = node.actors.contains(id);
      ASSERT_TRUE(known || node.actors.size() + 1 <= static_cast<size_t>(node.cpus))
          << "over-placed";
      proto::CreateActorReply reply;
      if (rng.chance(0.1)) {
        reply.set_no_resources(true);
      } else if (rng.chance(0.05)) {
        reply.mutable_failure()->set_kind(proto::ExitInfo::SIGNALED);
      } else {
        int worker = 1 + static_cast<int>(rng.below(250));
        node.actors[id] = {create.request.epoch(), worker};
        reply = created(worker);
      }
      if (reply.no_resources() || !reply.ok()) node.actors.erase(id);
      answer_create(create, reply);
    }
    sink.pushes.clear();
    sink.closes.clear();
  }
  void heartbeat() {
    for (auto& [n, node] : nodes) {
      if (!node.conn) continue;
      proto::ResourceReport report;
      report.set_node_id(node_id(n).binary());
      report.set_incarnation(++incarnation);
      set_resources(report.mutable_available(),
                    {{"CPU", node.cpus - static_cast<double>(node.actors.size())}});
      (void)core->report_resources(node.conn, report, now);
      commit();
    }
  }
  // Delivers the arguments of an actor that waits for them. If the disk refuses them, the actor is
  // dead.
  void deliver() {
    auto request = awaited.back();
    awaited.pop_back();
    if (!register_actor(arguments_of(request)).ok())
      killed.insert(ActorId::from_binary(request.spec().actor_id()));
  }
  void disturb(Rng& rng) {
    int n = nodes.empty()
                ? 0
                : std::next(nodes.begin(), static_cast<long>(rng.below(nodes.size())))->first;
    switch (rng.below(9)) {
      case 0:
        if (nodes.size() < 8 && last_node < 200) join(rng);
        break;
      case 1:
        if (n > 1 && rng.chance(0.3)) {  // The node never comes back.
          core->connection_closed(nodes[n].conn, now);
          nodes.erase(n);
        }
        break;
      case 2:
        if (n && nodes[n].conn) {
          core->connection_closed(nodes[n].conn, now);
          commit();
          nodes[n].conn = 0;
          rejoin(n);
        }
        break;
      case 3:
        if (n && nodes[n].conn && !nodes[n].actors.empty()) {
          auto [id, life] = *nodes[n].actors.begin();
          nodes[n].actors.erase(id);
          proto::ActorDied report;
          report.set_actor_id(id.binary());
          report.set_epoch(life.first);
          report.mutable_death()->set_kind(proto::ExitInfo::SIGNALED);
          (void)core->actor_died(nodes[n].conn, report, now);
        }
        break;
      case 4: {
        auto request = actor_request(job, {{"CPU", 1}}, {{"CPU", 1}});
        request.mutable_spec()->set_max_restarts(-1);
        const bool follow = rng.chance(0.5);
        if (follow) request.set_arguments(proto::RegisterActorRequest::FOLLOW);
        if (register_actor(request).ok()) {
          created_ids.push_back(ActorId::from_binary(request.spec().actor_id()));
          if (follow) awaited.push_back(request);
        }
        break;
      }
      case 8:
        if (!awaited.empty() && rng.chance(0.5)) deliver();
        break;
      case 5:
        if (!created_ids.empty() && rng.chance(0.3)) {
          ActorId id = created_ids[rng.below(created_ids.size())];
          (void)kill(id, true);
          killed.insert(id);
        }
        break;
      case 6:
        if (rng.chance(0.1)) disk.failure = make_error(Code::kOutOfDisk, "full");
        if (rng.chance(0.5)) disk.failure.reset();
        break;
      case 7:
        if (rng.chance(0.05) && !disk.failure) {
          advance(
              options.settings.storage_retry_ms);  // Failed writes are repeated before the crash.
          serve(rng);
          restart();
          for (auto& [id, node] : nodes) node.conn = 0;
          std::vector<int> all;
          for (auto& [id, node] : nodes) all.push_back(id);
          for (int id : all) rejoin(id);
        }
        break;
    }
    commit();
  }

  std::map<int, FakeNode> nodes;
  JobId job;
  std::vector<ActorId> created_ids;
  std::vector<proto::RegisterActorRequest> awaited;  // Registered without their arguments.
  std::set<ActorId> killed;
  int last_node = 0;
  ConnId last_conn = 1000;
};

TEST_F(ChaosTest, ActorsAndJobsSurviveRandomFaults) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    disk = MemoryStorage::Disk();
    nodes.clear();
    created_ids.clear();
    awaited.clear();
    killed.clear();
    last_node = 0;
    restart();
    join(rng);
    job = add_job(1);
    for (int step = 0; step < 400; ++step) {
      disturb(rng);
      serve(rng);
      if (HasFatalFailure()) return;
      advance(static_cast<int64_t>(rng.below(200)));
      serve(rng);
      if (step % 2 == 0) heartbeat();
      core->check_invariants(now);
    }
    disk.failure.reset();
    while (!awaited.empty()) deliver();
    while (nodes.size() < 60) join(rng);  // Now there is room for all actors.
    for (int i = 0; i < 60; ++i) {
      advance(500);
      serve(rng);
      heartbeat();
      serve(rng);
    }
    size_t alive = 0;
    for (const ActorId& id : created_ids) {
      const Actor* actor = core->view().actors().find(id);
      bool dead = !actor || actor->dead();  // The head may have forgotten a dead actor.
      ASSERT_EQ(dead, killed.contains(id)) << id.hex();
      if (dead) continue;
      ASSERT_EQ(actor->phase, Actor::Phase::kAlive) << id.hex();
      int n = node_of(actor->node);
      ASSERT_TRUE(n && nodes[n].actors.contains(id))
          << "the head believes in an actor its node does not have";
      ASSERT_EQ(nodes[n].actors[id].first, actor->info.epoch());
      ++alive;
    }
    size_t hosted = 0;
    for (const auto& [n, node] : nodes) hosted += node.actors.size();
    EXPECT_EQ(hosted, alive);  // No node runs an actor that the head does not know.
  }
  sink.pushes.clear();
}

}  // namespace
}  // namespace rt::head
