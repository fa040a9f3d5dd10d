// Workers without the rest of a node: a listener that only notes what it hears.
#include "daemons/node_manager/core/workers.h"

#include <gtest/gtest.h>

#include "recording_sink.h"

namespace rt::node {
namespace {

class Notes final : public Workers::Listener {
 public:
  void work_ended(Worker& worker, Now) override { idle.push_back(worker.id); }
  ActorId actor_in(const Worker&) const override { return ActorId::nil(); }
  void process_ended(const RoomKey&, const proto::ExitInfo& info) override { ends.push_back(info); }
  void cannot_start(const WorkerKind&, const std::string& why, Code, Now) override {
    hopeless.push_back(why);
  }
  std::vector<WorkerId> idle;
  std::vector<proto::ExitInfo> ends;
  std::vector<std::string> hopeless;
};

class WorkersTest : public testing::Test {
 protected:
  WorkersTest() {
    settings.prestart_workers = 1;
    settings.worker_start_retries = 0;
  }
  void TearDown() override {
    workers.check_invariants();
    EXPECT_EQ(sink.rest(), "");
  }
  static NodeIdentity identity() {
    Rng rng(7);
    return {NodeId::random(rng), "10.0.0.1", 10000, ResourceSet::from_map({{"CPU", 1}}).value(), 1};
  }
  Now now() const { return {us, us}; }
  WorkerId started() {
    workers.start_needed(false, now());
    const WorkerId id = RecordingSink::take(sink.spawns).id;
    workers.spawned(id, 100);
    return id;
  }
  WorkerId registered() {
    const WorkerId id = started();
    EXPECT_TRUE(workers.registered(id, 100, "/s/w", now()));
    return id;
  }
  void reap(const WorkerId& id) {
    EXPECT_TRUE(workers.exited(id, {true, 0, 9, ""}, now()));
    EXPECT_EQ(RecordingSink::take(sink.deaths).id, id);
  }

  Settings settings;
  NodeIdentity me = identity();
  Rooms rooms{Room(me.total, GpuPool(0, {}))};
  proto::NodeCounters counters;
  RecordingSink sink;
  Notes notes;
  Workers workers{{notes, sink, settings, me, rooms, counters}};
  int64_t us = 1'000'000;
};

TEST_F(WorkersTest, OneThatDoesNotRegisterIsKilledAndItsKindGivenUp) {
  const WorkerId id = started();
  us += settings.worker_register_timeout_ms * 1000;
  workers.reap_overdue(now());
  EXPECT_TRUE(sink.kills.empty());
  us += 1;
  workers.reap_overdue(now());
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  ASSERT_EQ(notes.hopeless.size(), 1u);
  EXPECT_NE(notes.hopeless[0].find("no worker process can be started"), std::string::npos);
  reap(id);
  ASSERT_EQ(notes.ends.size(), 1u);
  EXPECT_EQ(notes.ends[0].worker_id(), id.binary());
  EXPECT_EQ(counters.workers_started(), 1);
}

TEST_F(WorkersTest, OneThatIsDismissedHasAMomentToEndByItself) {
  const WorkerId id = registered();
  Worker& worker = *workers.pool().find(id);
  workers.pool().set_state(worker, WorkerState::kLeased, now());
  workers.dismiss(worker, proto::ExitInfo::OWNER_DIED, "its owner ended", now());
  EXPECT_EQ(notes.idle, std::vector<WorkerId>{id});
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  EXPECT_TRUE(workers.needs_ticks(true));
  workers.reap_overdue(now());
  EXPECT_TRUE(sink.kills.empty());
  us += 1'000'001;
  workers.reap_overdue(now());
  EXPECT_EQ(RecordingSink::take(sink.kills), id);
  reap(id);
  EXPECT_EQ(notes.ends[0].kind(), proto::ExitInfo::OWNER_DIED);
  EXPECT_EQ(workers.exit_of(id)->kind(), proto::ExitInfo::OWNER_DIED);
}

TEST_F(WorkersTest, OneThatIsIdleAndNotNeededIsAskedToLeave) {
  const WorkerId id = registered();
  settings.prestart_workers = 0;
  workers.retire_idle(now());
  EXPECT_TRUE(sink.exits.empty()) << "it may be needed soon";
  us += settings.idle_worker_timeout_ms * 1000;
  workers.retire_idle(now());
  EXPECT_EQ(RecordingSink::take(sink.exits), id);
  EXPECT_TRUE(notes.idle.empty()) << "it had no work";
  us += settings.worker_exit_timeout_ms * 1000;
  workers.reap_overdue(now());
  EXPECT_EQ(RecordingSink::take(sink.kills), id) << "it must answer in time";
  reap(id);
}

}  // namespace
}  // namespace rt::node
