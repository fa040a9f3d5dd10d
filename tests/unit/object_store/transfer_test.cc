// Transfers of objects between the stores of several nodes, through the front doors of the nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/object_store/store_fixture.h"

namespace rt::store {
namespace {

using ::testing::HasSubstr;

class TransferTest : public ::testing::Test {
 protected:
  ~TransferTest() override {
    for (Store* store : {&near, &far, &third})
      store->run([](StoreService& service) { service.check_invariants(); });
  }
  TempDir directory;
  Store near{directory / "near", 128 * kMiB, 1};
  Store far{directory / "far", 128 * kMiB, 2};
  Store third{directory / "third", 128 * kMiB, 3};
};

TEST_F(TransferTest, ObjectOfAnotherNodeArrivesWhole) {
  TestClient there(far, 1), here(near, 2);
  auto data = pattern(50 * kMiB + 12345);
  ASSERT_TRUE(there.put(object_id(1), data));
  auto view = here.get(object_id(1), {far.location(static_cast<int64_t>(data.size()))});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(same(view->bytes, data));
  // The transfer releases its pin, and the object stays until its owner frees it.
  there.client->drain_releases();
  there.flush();
  EXPECT_TRUE(
      eventually(far, [](auto& stats) { return stats.pinned() == 0 && stats.num_objects() == 1; }));
  // The owner frees the object on all nodes.
  there.client->free({object_id(1)}, {near.location(), far.location()});
  there.flush();
  view->keepalive.reset();
  here.client->drain_releases();
  here.flush();
  EXPECT_TRUE(eventually(near, [](auto& stats) { return stats.num_objects() == 0; }));
  EXPECT_TRUE(eventually(far, [](auto& stats) { return stats.num_objects() == 0; }));
}

TEST_F(TransferTest, SeveralGettersShareOneFetchAndSmallAndEmptyObjectsTravelToo) {
  TestClient there(far, 1), one(near, 2), two(near, 3);
  int answered = 0;
  for (uint32_t n = 0; n < 3; n++) {
    size_t size = n == 0 ? 0 : n == 1 ? 100 : 9'000'000;
    ASSERT_TRUE(there.put(object_id(n), pattern(size, n)));
    for (TestClient* client : {&one, &two}) {
      client->client->get({{object_id(n), {far.location()}}}, -1, [&, n, size](auto got) {
        EXPECT_TRUE(got[0] && same(got[0]->bytes, pattern(size, n)));
        answered++;
      });
      client->flush();
    }
  }
  for (TestClient* client : {&one, &two})
    client->run_until([&] { return answered == 6 || (client == &one && answered >= 3); });
  one.run_until([&] { return answered == 6; });
  EXPECT_EQ(stats_of(near).num_objects(), 3);
}

TEST_F(TransferTest, NextLocationIsTakenWhenOneFails) {
  TestClient there(far, 1), here(near, 2);
  auto data = pattern(9 * kMiB);
  ASSERT_TRUE(there.put(object_id(1), data));
  Location dead{node_id(9), "127.0.0.1", 1, 0};
  // The first location cannot be reached, the second does not have the object, the third has it.
  auto view = here.get(object_id(1), {dead, third.location(), far.location()});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(same(view->bytes, data));
}

TEST_F(TransferTest, LostObjectSaysWhereItWasLookedFor) {
  TestClient here(near, 2);
  auto view = here.get(object_id(1), {far.location()});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::kObjectLost);
  EXPECT_THAT(view.error().message, HasSubstr(std::to_string(far.location().port)));
}

TEST_F(TransferTest, StoreThatDiesMidwayIsReplacedByAnother) {
  TestClient here(near, 2);
  auto data = pattern(60 * kMiB);
  auto dying = std::make_unique<Store>(directory / "dying", 128 * kMiB, 4);
  Location gone = dying->location();
  {
    TestClient there(far, 1), doomed(*dying, 3);
    ASSERT_TRUE(there.put(object_id(1), data));
    ASSERT_TRUE(doomed.put(object_id(1), data));
    EXPECT_TRUE(eventually(*dying, [](auto& stats) { return stats.num_objects() == 1; }));
  }
  Result<OwnedBytes> view = make_error(Code::kInternal, "");
  bool done = false;
  here.client->get({{object_id(1), {gone, far.location()}}}, -1, [&](auto got) {
    view = std::move(got[0]);
    done = true;
  });
  here.flush();
  // The transfer has begun.
  EXPECT_TRUE(eventually(near, [](auto& stats) { return stats.num_objects() == 1; }));
  dying.reset();
  here.run_until([&] { return done; });
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(same(view->bytes, data));
}

TEST_F(TransferTest, StoreThatIsReceivingServesOthers) {
  TestClient there(far, 1), here(near, 2), next(third, 3);
  auto data = pattern(60 * kMiB);
  ASSERT_TRUE(there.put(object_id(1), data));
  bool here_done = false;
  Result<OwnedBytes> kept = make_error(Code::kInternal, "");
  here.client->get({{object_id(1), {far.location()}}}, -1, [&](auto got) {
    kept = std::move(got[0]);
    here_done = true;
  });
  here.flush();
  auto view = next.get(object_id(1), {near.location()});  // The only source is still receiving.
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(same(view->bytes, data));
  here.run_until([&] { return here_done; });
  EXPECT_TRUE(kept);
}

TEST_F(TransferTest, APullWhoseStoreHasGoneIsAnsweredAllTheSameAndGivesItsPinBack) {
  Settings settings = test_settings();
  settings.seal_grace_ms = 30'000;
  Store patient(directory / "patient", 16 * kMiB, 4, settings);
  rpc::Identity peer;
  peer.role = "object_store";
  peer.token = "secret";
  auto client = rpc::SyncClient::connect(
      {net::Address::tcp("127.0.0.1", patient.location().port), "store", {}}, peer, 60'000'000);
  ASSERT_TRUE(client) << client.error().message;
  proto::PullRequest pull;
  pull.set_object_id(object_id(1).binary());
  pull.set_length(100);
  rpc::call(*(*client)->connection(), &proto::ObjectStoreService::Stub::Pull, pull, -1,
            [](Result<proto::PullReply>) {});
  // The answer to a later request shows that the Pull waits for the object.
  ASSERT_TRUE((*client)->call(&proto::ObjectStoreService::Stub::GetStats, proto::Empty()));
  client->reset();
  // The store has seen the end of the connection when it has answered requests that came later.
  for (int i = 0; i < 3; ++i) stats_of(patient);
  TestClient there(patient, 1);
  ASSERT_TRUE(there.put(object_id(1), pattern(100)));
  there.client->drain_releases();
  there.flush();
  EXPECT_TRUE(eventually(
      patient, [](auto& stats) { return stats.pinned() == 0 && stats.num_objects() == 1; }));
  there.client->free({object_id(1)}, {});
  there.flush();
  EXPECT_TRUE(eventually(patient, [](auto& stats) { return stats.num_objects() == 0; }));
  patient.run([](StoreService& service) { service.check_invariants(); });
}

TEST_F(TransferTest, WrongTokenGetsNothing) {
  rpc::Identity stranger;
  stranger.role = "object_store";
  stranger.token = "guess";
  auto client = rpc::SyncClient::connect(
      {net::Address::tcp("127.0.0.1", far.location().port), "store", {}}, stranger, 60'000'000);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Code::kUnauthenticated);
}

TEST_F(TransferTest, OtherNodesMayNotCreate) {
  rpc::Identity peer;
  peer.role = "object_store";
  peer.token = "secret";
  auto client = rpc::SyncClient::connect(
      {net::Address::tcp("127.0.0.1", far.location().port), "store", {}}, peer, 60'000'000);
  ASSERT_TRUE(client) << client.error().message;
  proto::AttachRequest attach;
  attach.set_worker_id(worker_id(1).binary());
  EXPECT_EQ((*client)->call(&proto::ObjectStoreService::Stub::Attach, attach).error().code,
            Code::kInvalid);
  proto::PullRequest pull;
  pull.set_object_id("short");
  EXPECT_EQ((*client)->call(&proto::ObjectStoreService::Stub::Pull, pull).error().code,
            Code::kInvalid);
}

}  // namespace
}  // namespace rt::store
