// Whatever happens in whatever order, no room of a node is given out beyond what it has, and in the
// end everything is free.
#include "bundle_fixture.h"

namespace rt::node {
namespace {

class BundleRandom : public BundleTest {
 protected:
  double half(double most) { return static_cast<double>(1 + rng.below(2 * most)) / 2; }
  Amounts some() {
    Amounts amounts = {{"CPU", static_cast<double>(1 + rng.below(2))}};
    if (rng.chance(0.3)) amounts["GPU"] = half(1);
    if (rng.chance(0.2)) amounts = {{"GPU", half(1)}};
    return amounts;
  }
  WorkerId any_worker() {
    auto it = core->view().pool().all().begin();
    std::advance(it, static_cast<long>(rng.below(core->view().pool().all().size())));
    return it->first;
  }
  void end_a_worker() {
    if (core->view().pool().all().empty()) return;
    const WorkerId id = any_worker();
    std::erase_if(sink.spawns, [&](const auto& spawn) { return spawn.id == id; });
    if (core->view().worker(id)->connected && rng.chance(0.5)) core->worker_disconnected(id, now());
    if (rng.chance(0.7)) reap(id, SIGKILL);
  }
  void lease_event() {
    if (leases.empty()) return;
    const size_t i = rng.below(leases.size());
    if (rng.chance(0.5)) {
      core->set_blocked(worker_of(leases[i]), rng.chance(0.5), now());
      return;
    }
    give_back(leases[i], rng.chance(0.1));
    leases.erase(leases.begin() + static_cast<long>(i));
  }
  void ask_for_bundles() {
    std::map<int, Amounts> bundles;
    for (size_t i = 0; i <= rng.below(3); ++i)
      bundles[static_cast<int>(rng.below(4))] = {{"CPU", half(2)},
                                                 {"GPU", rng.chance(0.3) ? half(1) : 0}};
    prepare_some(++epoch - static_cast<int64_t>(rng.below(2)), bundles, 1 + rng.below(4));
  }
  void step() {
    const int index = static_cast<int>(rng.below(4)) - 1;
    switch (rng.below(14)) {
      case 0:
        want(1 + rng.below(3), demand(static_cast<int>(rng.below(5)), some(), rng.below(3)));
        break;
      case 1:
      case 2:
        want(1 + rng.below(3), demand_in(index, static_cast<int>(rng.below(5)), some(),
                                         10 + rng.below(9), 1 + rng.below(4)));
        break;
      case 3:
      case 4:
      case 5:
        if (!sink.spawns.empty()) start_worker();
        break;
      case 6:
      case 7: lease_event(); break;
      case 8:
        if (rng.chance(0.1)) core->owner_closed(1 + rng.below(3), now());
        break;
      case 9:
        actors.push_back(rng.chance(0.3)
                             ? actor(++last_actor, {{"CPU", 1}}, {})
                             : actor_in(index, ++last_actor, some(),
                                        rng.chance(0.3) ? some() : Amounts(), 1 + rng.below(4)));
        create(actors.back());
        break;
      case 10:
        if (!actors.empty()) constructed(actors[rng.below(actors.size())]);
        break;
      case 11: ask_for_bundles(); break;
      case 12:
        if (rng.chance(0.5)) return_bundles(epoch, {index}, 1 + rng.below(4));
        if (rng.chance(0.2)) return_bundles(epoch, {}, 1 + rng.below(4));
        break;
      default: end_a_worker(); pass(static_cast<int64_t>(rng.below(120)) * kMs);
    }
    core->check_invariants();
    while (!sink.grants.empty()) leases.push_back(take_grant());
    while (!sink.prepared.empty()) succeeded += RecordingSink::take(sink.prepared).reply.ok();
    std::erase_if(sink.spawns, [&](const auto& spawn) { return !core->view().worker(spawn.id); });
  }
  void end_everything() {
    for (OwnerId owner = 1; owner <= 3; ++owner) core->owner_closed(owner, now());
    for (uint64_t n = 1; n <= 4; ++n) return_bundles(epoch, {}, n);
    core->job_over(job(), now());
    while (core->view().pool().processes() > 0) {
      reap(core->view().pool().all().begin()->first, SIGKILL);
      sink.spawns.clear();
    }
  }

  Rng rng{0};
  int64_t epoch = 0;
  uint32_t last_actor = 0;
  int succeeded = 0;
  std::vector<RecordingSink::Grant> leases;
  std::vector<proto::CreateActorRequest> actors;
};

TEST_F(BundleRandom, NoRoomIsGivenOutBeyondWhatItHas) {
  int bundles = 0, in_bundles = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    rng = Rng(seed);
    sink = RecordingSink();
    leases.clear();
    actors.clear();
    epoch = succeeded = 0;
    make_with({{"CPU", 6}, {"GPU", 3}});
    for (int i = 0; i < 1500; ++i) {
      step();
      if (!leases.empty() && core->view().worker(worker_of(leases.back())))
        in_bundles += !core->view().worker(worker_of(leases.back()))->room.is_node();
    }
    bundles += succeeded;
    core->stop();  // Nothing new begins while everything ends.
    end_everything();
    EXPECT_EQ(core->view().resources().available(), core->view().resources().total());
    EXPECT_EQ(core->view().bundles().size(), 0u);
    EXPECT_TRUE(core->view().bundles().reserved().empty());
    EXPECT_TRUE(core->view().actors().empty());
  }
  // The steps must reach what they are about.
  EXPECT_GT(bundles, 200);
  EXPECT_GT(in_bundles, 200);
  sink = RecordingSink();
}

}  // namespace
}  // namespace rt::node
