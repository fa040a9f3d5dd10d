// A node that is being drained: it accepts no new work and gets rid of the work that waits.
#include "core_fixture.h"

namespace rt::node {
namespace {

class Drain : public NodeCoreTest {
 protected:
  void drain() {
    core->drain(wanted, now());
    core->check_invariants();
  }
  proto::NodeDrain wanted;
};

TEST_F(Drain, LeasesAreAskedBackAndNoMoreAreGiven) {
  make(2, 2);
  start_workers(2);
  want(1, demand(1));
  auto grant = take_grant();
  EXPECT_EQ(core->view().busy_with(), "1 leased worker");
  drain();
  EXPECT_EQ(RecordingSink::take(sink.revokes).leases,
            std::vector<uint64_t>{grant.message.lease_id()});
  give_back(grant);
  EXPECT_EQ(core->view().busy_with(), "");
  want(1, demand(1));
  want(1, demand(1, {}, 2));
}

TEST_F(Drain, ItsDemandsGoToOtherNodesAlsoThoseThatWereSentHere) {
  make(2, 2);
  start_workers(2);
  core->node_changed(peer(2, {{"CPU", 4}}, {{"CPU", 4}}));
  drain();
  want(1, demand(1));
  EXPECT_EQ(RecordingSink::take(sink.redirects).owner, 1u);
  auto sent_here = demand(2);
  sent_here.set_no_spill(true);
  want(2, sent_here);
  EXPECT_EQ(RecordingSink::take(sink.redirects).message.count(), 2);
}

TEST_F(Drain, NothingIsReportedFree) {
  make(2, 2);
  start_workers(2);
  proto::ResourceReport before, after;
  core->view().fill_report(&before);
  EXPECT_FALSE(before.has_drain());
  EXPECT_EQ(before.available().units().size(), 1u);
  wanted.set_deadline_ms(9000);
  drain();
  wanted.set_deadline_ms(5000);  // The machine goes sooner than was said first.
  drain();
  core->view().fill_report(&after);
  EXPECT_EQ(after.drain().deadline_ms(), 5000);
  EXPECT_TRUE(after.available().units().empty());
}

TEST_F(Drain, ActorsStayAndNoneComes) {
  make(2, 2);
  start_workers(2);
  auto here = actor(1, {{"CPU", 1}}, {});
  create(here);
  constructed(here);
  sink.starts.clear();
  sink.spawns.clear();  // A warm worker replaces the one that the actor took.
  sink.created.clear();
  drain();
  EXPECT_EQ(core->view().busy_with(), "1 actor");
  create(actor(2, {}, {}));
  auto refused = RecordingSink::take(sink.created);
  EXPECT_TRUE(refused.reply.no_resources());
  EXPECT_FALSE(core->hold_for_job("j", ResourceSet(), now()));
}

TEST_F(Drain, AnActorThatWaitsIsGivenBackToTheHead) {
  make(1, 0);
  create(actor(1, {{"CPU", 1}}, {}));
  sink.spawns.clear();
  drain();
  EXPECT_TRUE(RecordingSink::take(sink.created).reply.no_resources());
  EXPECT_EQ(core->view().busy_with(), "");
}

}  // namespace
}  // namespace rt::node
