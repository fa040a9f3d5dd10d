// The store tells people of its room: why a request was refused, who holds the room, and who waits
// for it.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/object_store/core_fixture.h"

namespace rt::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RoomTest : public StoreCoreTest {
 protected:
  // Without pages yet, so that whoever gets room waits for them.
  void restart_without_pages() {
    StoreCore::Options options;
    options.capacity = 16 * kMiB;
    core.emplace(options, sink);
    for (ClientId client : {kAlice, kBob})
      ASSERT_TRUE(
          core->attach(client, worker(client), job_id_from_int(1), static_cast<int>(client)));
  }
  void restart_with_bound(size_t max_waiting) {
    StoreCore::Options options;
    options.capacity = 16 * kMiB;
    options.max_waiting = max_waiting;
    core.emplace(options, sink);
    for (ClientId client : {kAlice, kBob})
      ASSERT_TRUE(
          core->attach(client, worker(client), job_id_from_int(1), static_cast<int>(client)));
    core->reserve_ahead(16 * kMiB);
    core->on_reserved(take(sink.reserves), Status(), now);
  }
};

TEST_F(RoomTest, ARefusalForTheBoundOnWaitingRequestsNamesTheSetting) {
  restart_with_bound(1);
  put(kAlice, object(1), 12 * kMiB);
  core->create(kBob, 1, {{object(2), 8 * kMiB, worker(kBob)}}, true, now);
  core->create(kBob, 2, {{object(3), 8 * kMiB, worker(kBob)}}, true, now);
  Error room = take(sink.created).offsets.error();
  EXPECT_EQ(room.code, Code::kResourceExhausted);
  EXPECT_THAT(
      room.message,
      AllOf(HasSubstr("1 requests already wait for room"),
            HasSubstr("raise the setting store_max_waiting (RAY_store_max_waiting, now 1)")));

  Source far{node(1), "10.0.0.2", 7, 100};
  core->get(kAlice, 3, {{object(8), {far}}}, -1, now, 0);
  core->get(kAlice, 4, {{object(9), {far}}}, -1, now, 0);
  Error objects = take(sink.got).answers.at(0).error;
  EXPECT_EQ(objects.code, Code::kResourceExhausted);
  EXPECT_THAT(
      objects.message,
      AllOf(HasSubstr("1 requests already wait for objects"),
            HasSubstr("raise the setting store_max_waiting (RAY_store_max_waiting, now 1)")));
  EXPECT_EQ(take(sink.fetches).id, object(8));
}

TEST_F(RoomTest, ADriverThatHoldsTheRoomIsCalledADriver) {
  constexpr ClientId kDriver = 200;
  const JobId job = job_id_from_int(7);
  const WorkerId driver = driver_worker_id(job);
  ASSERT_TRUE(core->attach(kDriver, driver, job, 200));
  core->create(kDriver, 1, {{object(1), 12 * kMiB, driver}}, false, now);
  const int64_t offset = take(sink.created).offsets->at(0);
  core->seal(kDriver, {{object(1), offset, 12 * kMiB, 0, driver}}, {}, now);
  put(kAlice, object(2), kMiB);
  std::string text = create_error(kBob, object(3), 8 * kMiB).message;
  EXPECT_THAT(
      text, AllOf(HasSubstr("held by the driver of job 07000000 (pid 200) 12.0 MiB in 1 objects,"),
                  HasSubstr(fmt::format("worker {} (pid 100) 1.0 MiB in 1 objects.",
                                        worker(kAlice).hex().substr(0, 16)))));
}

TEST_F(RoomTest, RoomThatIsInPiecesIsSaidToBe) {
  for (uint32_t n = 1; n <= 4; n++) put(kAlice, object(n), 4 * kMiB);
  core->release(kAlice, {object(1), object(3)}, now, {});
  core->free({object(1), object(3)}, now);
  std::string pieces = create_error(kBob, object(9), 6 * kMiB).message;
  EXPECT_THAT(pieces, AllOf(HasSubstr("8.0 MiB of 16.0 MiB used"),
                            HasSubstr("8.0 MiB are free, but in pieces of at most 4194304 bytes")));
  EXPECT_THAT(create_error(kBob, object(9), 9 * kMiB).message, Not(HasSubstr("in pieces")));
}

TEST_F(RoomTest, RoomOfAClientThatEndsWhileItsPagesAreReservedGoesToWhoWaits) {
  restart_without_pages();
  core->create(kAlice, 1, {{object(1), 12 * kMiB, worker(kAlice)}}, true, now);
  core->create(kBob, 2, {{object(2), 8 * kMiB, worker(kBob)}}, true, now);
  core->client_gone(kAlice, now);
  while (!sink.reserves.empty()) core->on_reserved(take(sink.reserves), Status(), now);
  ASSERT_EQ(sink.created.size(), 1u) << "Bob waits on although there is room";
  const Recorder::Created created = take(sink.created);
  EXPECT_EQ(created.client, kBob);
  EXPECT_TRUE(created.offsets);
}

TEST_F(RoomTest, CopiesInTheWayOfOneRangeAreEvicted) {
  for (uint32_t n = 1; n <= 4; n++) put(n % 2 ? kAlice : kFetcher, object(n), 4 * kMiB);
  for (uint32_t n : {2, 4}) {
    EXPECT_TRUE(get_now(kCarol, object(n)).found);
    core->release(kCarol, {}, now, {object(n)});
    core->release(kCarol, {object(n)}, now, {});
    core->release(kFetcher, {object(n)}, now, {});
  }
  core->release(kAlice, {object(3)}, now, {});
  core->free({object(3)}, now);
  // The copy 2 lies before the hole and is evicted first; the copy 4 may stay.
  put(kBob, object(9), 6 * kMiB);
  EXPECT_FALSE(core->contains(object(2)));
  EXPECT_TRUE(core->contains(object(4)));
}

TEST_F(RoomTest, WhoWaitsForRoomIsListedWithBytesAndSinceWhen) {
  const int64_t first_us = now.steady_us;
  put(kAlice, object(1), 12 * kMiB);
  EXPECT_TRUE(core->stats(true).waiters.empty());
  core->create(kBob, 1, {{object(2), 8 * kMiB, worker(kBob)}}, true, now);
  now.steady_us += 1'000'000;
  core->create(kBob, 2, {{object(3, 2), 5 * kMiB, worker(kBob)}}, true, now);
  core->create(kBob, 3, {{object(4), 6 * kMiB, worker(kBob)}}, true, now);
  // A getter of a copy, and a task whose arguments do not fit.
  Source far{node(1), "10.0.0.2", 7, 9 * kMiB};
  core->get(kCarol, 4, {{object(8), {far}}}, -1, now, 0);
  core->get(kCarol, 5, {{object(9), {far}}}, -1, now, 77);
  const auto waiters = core->stats(true).waiters;
  ASSERT_EQ(waiters.size(), 4u);
  EXPECT_EQ(waiters[0].kind, Waiter::Kind::kValues);
  EXPECT_EQ(waiters[0].worker, worker(kBob));
  EXPECT_EQ(waiters[0].pid, static_cast<int>(kBob));
  EXPECT_EQ(waiters[0].job, job_id_from_int(1));
  EXPECT_EQ(waiters[0].count, 2);
  EXPECT_EQ(waiters[0].bytes, 14 * kMiB);
  EXPECT_EQ(waiters[0].since_us, first_us);
  int64_t of_others = 0;
  for (size_t i = 1; i < waiters.size(); i++) {
    EXPECT_EQ(waiters[i].since_us, first_us + 1'000'000);
    EXPECT_EQ(waiters[i].count, 1);
    of_others += waiters[i].bytes;
    if (waiters[i].kind != Waiter::Kind::kValues) {
      EXPECT_EQ(waiters[i].worker, worker(kCarol));
    } else {
      EXPECT_EQ(waiters[i].job, job_id_from_int(2));
    }
  }
  EXPECT_EQ(of_others, 23 * kMiB);
  core->client_gone(kBob, now);
  core->client_gone(kCarol, now);
  EXPECT_TRUE(core->stats(true).waiters.empty());
}

}  // namespace
}  // namespace rt::store
