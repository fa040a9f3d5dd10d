// The object store over real sockets: zero-copy views, freed memory, dead and lying clients.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/unit/object_store/store_fixture.h"

namespace rt::store {
namespace {

using ::testing::HasSubstr;
using Stub = proto::ObjectStoreService::Stub;

class StoreServiceTest : public ::testing::Test {
 protected:
  ~StoreServiceTest() override {
    store.run([](StoreService& service) { service.check_invariants(); });
  }
  TempDir directory;
  Store store{directory / "store", 64 * kMiB};
};

TEST_F(StoreServiceTest, SecondClientSeesWhatTheFirstPutWithoutACopy) {
  TestClient alice(store, 1), bob(store, 2);
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{100'000}, size_t{1'000'000}, size_t{9'000'001}}) {
    SCOPED_TRACE(size);
    ObjectId id = object_id(static_cast<uint32_t>(size));
    auto data = pattern(size);
    auto mine = alice.put(id, data);
    ASSERT_TRUE(mine) << mine.error().message;
    EXPECT_TRUE(same(mine->bytes, data));
    auto view = bob.get(id, {store.location()});
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_TRUE(same(view->bytes, data));
    auto again = bob.get(id);
    EXPECT_EQ(again->bytes.data(), view->bytes.data());
    EXPECT_EQ(again->keepalive, view->keepalive);  // Both views of a client share one pin.
  }
}

TEST_F(StoreServiceTest, SmallObjectsNeedNoAnswerAndReturnTheirSpace) {
  TestClient alice(store, 1);
  auto data = pattern(200'000);
  {
    std::vector<OwnedBytes> views;
    for (uint32_t n = 0; n < 100; n++) {
      auto view = alice.put(object_id(n), data);
      ASSERT_TRUE(view) << view.error().message;
      views.push_back(std::move(*view));
    }
    for (auto& view : views) EXPECT_TRUE(same(view.bytes, data));
  }
  bool at_once = false;
  alice.client->create(object_id(200), 1000, alice.owner, [&](Result<Allocation> allocation) {
    at_once = true;
    alice.client->abort(object_id(200), *allocation);
  });
  EXPECT_TRUE(at_once);
  std::vector<ObjectId> ids;
  for (uint32_t n = 0; n < 100; n++) ids.push_back(object_id(n));
  alice.client->free(ids, {});
  alice.flush();
  EXPECT_TRUE(eventually(store, [](auto& stats) {
    return stats.num_objects() == 0 && stats.allocated() <= 4 * kMiB;
  }));
}

TEST_F(StoreServiceTest, ViewsAreReadOnly) {
  TestClient alice(store, 1);
  auto view = alice.put(object_id(1), pattern(2 * kMiB));
  ASSERT_TRUE(view);
  auto* p = const_cast<uint8_t*>(view->bytes.data());
  // The address sanitizer has a handler, which exits.
  EXPECT_EXIT((::signal(SIGSEGV, SIG_DFL), *p = 1), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(StoreServiceTest, FreedWhenTheLastViewIsDropped) {
  TestClient alice(store, 1), bob(store, 2);
  auto mine = alice.put(object_id(1), pattern(2 * kMiB));
  auto theirs = bob.get(object_id(1), {store.location()});
  ASSERT_TRUE(theirs);
  alice.client->free({object_id(1)}, {});
  alice.flush();
  mine->keepalive.reset();
  alice.client->drain_releases();
  alice.flush();
  EXPECT_TRUE(eventually(store, [](auto& stats) { return stats.num_objects() == 1; }));
  EXPECT_TRUE(same(theirs->bytes, pattern(2 * kMiB)));
  std::thread([view = std::move(*theirs)]() mutable {
    view.keepalive.reset();
  }).join();  // Any thread may drop a view.
  bob.client->drain_releases();
  bob.flush();
  EXPECT_TRUE(eventually(
      store, [](auto& stats) { return stats.num_objects() == 0 && stats.allocated() == 0; }));
}

TEST_F(StoreServiceTest, ViewOutlivesItsClient) {
  OwnedBytes view;
  auto data = pattern(3 * kMiB);
  {
    TestClient alice(store, 1);
    view = *alice.put(object_id(1), data);
  }
  EXPECT_TRUE(same(view.bytes, data));
}

TEST_F(StoreServiceTest, GoneClientsMemoryComesBack) {
  TestClient bob(store, 2);
  {
    TestClient alice(store, 1);
    ASSERT_TRUE(alice.create(object_id(1), 8 * kMiB));  // This object is never sealed.
    ASSERT_TRUE(
        // This one is sealed in a leased extent, so it lives on.
        alice.put(object_id(2), pattern(1000)));
    ASSERT_TRUE(alice.put(object_id(3), pattern(2 * kMiB)));
    ASSERT_TRUE(bob.get(object_id(3), {store.location()}));
  }
  EXPECT_TRUE(eventually(store, [](auto& stats) {
    return stats.num_objects() == 2 && stats.allocated() == 1024 + 2 * kMiB;
  }));
  EXPECT_TRUE(same(bob.get(object_id(2))->bytes, pattern(1000)));
}

TEST_F(StoreServiceTest, LiarIsDisconnectedOthersGoOn) {
  TestClient alice(store, 1), liar(store, 2);
  ASSERT_TRUE(alice.put(object_id(1), pattern(1000)));
  auto allocation = liar.create(object_id(2), 2 * kMiB);
  ASSERT_TRUE(allocation);
  allocation->offset += 4096;
  std::string why;
  liar.client->set_closed_handler([&](const Error& error) { why = error.message; });
  liar.client->seal(object_id(2), *allocation, liar.owner);
  liar.run_until([&] { return !liar.client->is_open(); });
  EXPECT_EQ(liar.create(object_id(3), 100).error().code, Code::kUnavailable);
  EXPECT_TRUE(eventually(store, [](auto& stats) { return stats.num_objects() == 1; }));
  EXPECT_TRUE(alice.put(object_id(4), pattern(2 * kMiB)));
}

TEST_F(StoreServiceTest, FullStoreSaysWhoHoldsTheMemoryAndLosesNothing) {
  TestClient alice(store, 1), bob(store, 2);
  auto data = pattern(40 * kMiB);
  auto view = alice.put(object_id(1), data);
  ASSERT_TRUE(view);
  auto refused = bob.create(object_id(2), 30 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kObjectStoreFull);
  EXPECT_THAT(refused.error().message,
              HasSubstr(fmt::format("worker {} (pid {}) 40.0 MiB", worker_id(1).hex().substr(0, 16),
                                    ::getpid())));
  EXPECT_TRUE(same(view->bytes, data));
}

TEST_F(StoreServiceTest, ACreatorThatWaitsGetsTheRoomThatIsFreedMeanwhile) {
  Settings settings = test_settings();
  settings.create_wait_ms = 60'000;
  Store patient(directory / "patient", 64 * kMiB, 0, settings);
  TestClient alice(patient, 1), bob(patient, 2);
  auto view = alice.put(object_id(1), pattern(40 * kMiB));
  ASSERT_TRUE(view);
  bool done = false;
  bob.client->create(object_id(3), 30 * kMiB, bob.owner, [&](Result<Allocation> allocation) {
    EXPECT_TRUE(allocation);
    done = true;
  });
  bob.flush();
  view->keepalive.reset();
  alice.client->free({object_id(1)}, {});
  alice.flush();
  bob.run_until([&] { return done; });
  patient.run([](StoreService& service) { service.check_invariants(); });
}

TEST_F(StoreServiceTest, FreedRoomIsReusedAtTheSamePlace) {
  TestClient alice(store, 1);
  const uint8_t* place = nullptr;
  for (uint32_t n = 0; n < 5; n++) {
    auto allocation = alice.create(object_id(n), 50 * kMiB);
    ASSERT_TRUE(allocation) << allocation.error().message;
    if (place) {
      EXPECT_EQ(allocation->memory.data(), place);
    }
    place = allocation->memory.data();
    alice.client->seal(object_id(n), *allocation, alice.owner);
    alice.client->free({object_id(n)}, {});
  }
}

TEST_F(StoreServiceTest, GetAnswersPerObject) {
  TestClient alice(store, 1);
  ASSERT_TRUE(alice.put(object_id(1), pattern(1000)));
  std::vector<Result<OwnedBytes>> answers;
  alice.client->get({{object_id(1), {}}, {object_id(2), {}}}, -1,
                    [&](auto got) { answers = std::move(got); });
  alice.run_until([&] { return !answers.empty(); });
  EXPECT_TRUE(answers[0]);
  EXPECT_EQ(answers[1].error().code, Code::kObjectLost);
  EXPECT_EQ(alice.get(object_id(2), {store.location()}, 1000).error().code, Code::kTimeout);
}

TEST_F(StoreServiceTest, ClientsLearnThatTheStoreIsGone) {
  TestClient alice(store, 1);
  TempDir other_directory;
  auto other = std::make_unique<Store>(other_directory / "store", 64 * kMiB);
  TestClient bob(*other, 2);
  auto view = bob.put(object_id(1), pattern(2 * kMiB));
  bool closed = false, got = false;
  bob.client->set_closed_handler([&](const Error&) { closed = true; });
  bob.client->get({{object_id(7), {other->location()}}}, -1, [&](auto answers) {
    EXPECT_FALSE(answers[0]);
    got = true;
  });
  bob.flush();
  other.reset();
  bob.run_until([&] { return closed && got; });
  EXPECT_TRUE(same(view->bytes, pattern(2 * kMiB)));
  EXPECT_TRUE(alice.client->is_open());
}

TEST_F(StoreServiceTest, AttachNamesASocketNobodyListensOn) {
  net::PollLoop loop;
  StoreClient::Options options;
  options.socket_path = directory / "nobody";
  auto client = StoreClient::attach(loop, test_settings(), options, 1'000'000);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, HasSubstr(directory / "nobody"));
}

TEST(CopyLarge, CopiesEverySizeAndAlignmentExactly) {
  auto from = pattern(5 * kMiB + 300);
  std::vector<uint8_t> to(from.size() + 200);
  for (size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{256 * 1024}, size_t{1 << 20} + 1,
                      size_t{5 * kMiB} + 13}) {
    for (size_t shift : {0, 1, 31, 64}) {
      for (size_t parallel : {size_t{1}, size_t{1} << 40}) {
        std::fill(to.begin(), to.end(), 0xAB);
        copy_large(to.data() + shift, from.data() + 2 * shift, size, parallel);
        ASSERT_TRUE(same(Bytes(to).subspan(shift, size), Bytes(from).subspan(2 * shift, size)))
            << size << " " << shift;
        ASSERT_EQ(to[shift + size], 0xAB);
        if (shift > 0) {
          ASSERT_EQ(to[shift - 1], 0xAB);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rt::store
