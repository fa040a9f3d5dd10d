// The core of the object store against a recording sink: pins, waiting, eviction, fetches, extents
// and clients that lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/unit/object_store/core_fixture.h"

namespace rt::store {
namespace {

using ::testing::HasSubstr;

TEST_F(StoreCoreTest, SealedObjectIsSeenByOthersUntilItIsFreedAndUnpinned) {
  int64_t offset = put(kAlice, object(1), 5000);
  GetAnswer answer = get_now(kBob, object(1));
  ASSERT_TRUE(answer.found);
  EXPECT_EQ(answer.offset, offset);
  EXPECT_EQ(answer.size, 5000);
  core->free({object(1)}, now);
  EXPECT_FALSE(core->contains(object(1)));
  EXPECT_EQ(core->stats().objects, 1);  // Alice and Bob still pin the freed object.
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 1);
  core->release(kBob, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
  EXPECT_EQ(core->stats().allocated, 0);
}

TEST_F(StoreCoreTest, FreedRoomIsUsedAgain) {
  int64_t first = put(kAlice, object(1), 8 * kMiB);
  core->free({object(1)}, now);
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_EQ(put(kAlice, object(2), 8 * kMiB), first);
}

TEST_F(StoreCoreTest, GetterWaitsForTheSeal) {
  int64_t offset = create(kAlice, object(1), 100);
  core->get(kBob, 7, {{object(1), {}}}, -1, now, 0);
  EXPECT_TRUE(sink.got.empty());
  core->seal(kAlice, {{object(1), offset, 100, 0, worker(kAlice)}}, {}, now);
  auto got = take(sink.got);
  EXPECT_EQ(got.call, 7u);
  EXPECT_TRUE(got.answers[0].found);
}

TEST_F(StoreCoreTest, GetterLearnsThatTheCreatorDied) {
  create(kAlice, object(1), 100);
  core->get(kBob, 7, {{object(1), {}}}, -1, now, 0);
  core->client_gone(kAlice, now);
  EXPECT_EQ(take(sink.got).answers[0].error.code, Code::kObjectLost);
  EXPECT_EQ(core->stats().allocated, 0);
}

TEST_F(StoreCoreTest, GetTimesOutAndNamesTheObject) {
  put(kAlice, object(1), 100);
  create(kAlice, object(2), 100);
  core->get(kBob, 7, {{object(1), {}}, {object(2), {}}}, 50'000, now, 0);
  pass(49'000);
  EXPECT_TRUE(sink.got.empty());
  pass(2'000);
  auto got = take(sink.got);
  EXPECT_TRUE(got.answers[0].found);
  EXPECT_EQ(got.answers[1].error.code, Code::kTimeout);
  EXPECT_THAT(got.answers[1].error.message, HasSubstr(object(2).hex()));
}

TEST_F(StoreCoreTest, ObjectSaidToBeHereMayBeSealedALittleLater) {
  Source here{node(0), "10.0.0.1", 1, 100};
  core->get(kBob, 7, {{object(1), {here}}}, -1, now, 0);
  core->get(kBob, 8, {{object(2), {here}}}, -1, now, 0);
  put(kAlice, object(1), 100);
  EXPECT_TRUE(take(sink.got).answers[0].found);
  pass(2'000'001);
  EXPECT_EQ(take(sink.got).answers[0].error.code, Code::kObjectLost);
}

TEST_F(StoreCoreTest, FreeThatOvertakesTheSealIsKept) {
  core->free({object(1)}, now);
  put(kAlice, object(1), 100);
  EXPECT_FALSE(core->contains(object(1)));
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
  put(kAlice, object(1), 100);  // A second creation is not hit by the earlier free.
  EXPECT_TRUE(core->contains(object(1)));
}

TEST_F(StoreCoreTest, ADeadClientLosesUnsealedObjectsAndExtents) {
  put(kAlice, object(1), kMiB);
  create(kAlice, object(2), kMiB);
  LeasedExtent extent = lease(kAlice);
  core->seal(kAlice, {{object(3), extent.range.offset, 1000, extent.id, worker(kAlice)}}, {}, now);
  EXPECT_TRUE(get_now(kBob, object(3)).found);
  core->get(kAlice, 9, {{object(4), {{node(1), "10.0.0.2", 1, 0}}}}, -1, now, 0);
  take(sink.fetches);
  core->client_gone(kAlice, now);
  EXPECT_TRUE(core->contains(object(1)));
  EXPECT_TRUE(core->contains(object(3)));
  EXPECT_EQ(core->stats().allocated, kMiB + 1024);  // The unused rest of the extent was returned.
  core->client_gone(kBob, now);
  core->free({object(1), object(3)}, now);
  EXPECT_EQ(core->stats().allocated, 0);
  core->on_fetch_failed(object(4), make_error(Code::kObjectLost, "gone"), now);
}

TEST_F(StoreCoreTest, FinishedExtentGivesBackWhatIsNotUsed) {
  LeasedExtent extent = lease(kAlice);
  core->seal(kAlice, {{object(1), extent.range.offset + 640, 100, extent.id, worker(kAlice)}},
             {extent.id}, now);
  EXPECT_EQ(core->stats().allocated, 128);
  core->check_invariants();
  core->free({object(1)}, now);
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_EQ(core->stats().allocated, 0);
}

TEST_F(StoreCoreTest, AClientWithInvalidMessagesIsDisconnected) {
  LeasedExtent mine = lease(kAlice), theirs = lease(kBob);
  core->seal(kBob, {{object(1), theirs.range.offset, 1000, theirs.id, worker(kBob)}}, {}, now);
  struct Lie {
    const char* what;
    SealItem item;
  };
  const Lie lies[] = {
      {"someone else's extent", {object(2), theirs.range.offset + 2048, 64, theirs.id, {}}},
      {"no such extent", {object(2), 0, 64, 999, {}}},
      {"beyond its end", {object(2), mine.range.offset + mine.range.size - 64, 65, mine.id, {}}},
      {"before its start", {object(2), mine.range.offset - 64, 64, mine.id, {}}},
      {"negative size", {object(2), mine.range.offset, -1, mine.id, {}}},
      {"overflowing size", {object(2), mine.range.offset, INT64_MAX, mine.id, {}}},
      {"overflowing offset", {object(2), INT64_MAX - 63, 64, mine.id, {}}},
      {"unaligned", {object(2), mine.range.offset + 1, 64, mine.id, {}}},
      {"never created", {object(2), 0, 64, 0, {}}},
  };
  ClientId liar = 200;
  for (const Lie& lie : lies) {
    SCOPED_TRACE(lie.what);
    SealItem item = lie.item;
    liar++;
    ASSERT_TRUE(core->attach(liar, worker(liar), job_id_from_int(1), 0));
    if (item.extent == mine.id) {
      LeasedExtent own = lease(liar);
      item.extent = own.id;
      item.offset += item.offset < INT64_MAX / 2 ? own.range.offset - mine.range.offset : 0;
    }
    core->seal(liar, {item}, {}, now);
    EXPECT_EQ(take(sink.closed).client, liar);
    EXPECT_FALSE(core->contains(object(2)));
    core->seal(liar, {item}, {}, now);  // Later messages of a disconnected client are ignored.
    core->client_gone(liar, now);
    core->check_invariants();
  }
  EXPECT_TRUE(get_now(kAlice, object(1)).found);
}

TEST_F(StoreCoreTest, SealingOverAnotherObjectIsRefused) {
  LeasedExtent extent = lease(kAlice);
  core->seal(kAlice, {{object(1), extent.range.offset + 64, 100, extent.id, {}}}, {}, now);
  core->seal(kAlice, {{object(2), extent.range.offset + 128, 10, extent.id, {}}}, {}, now);
  EXPECT_THAT(take(sink.closed).why.message, HasSubstr("overlaps another object"));
}

TEST_F(StoreCoreTest, ReleaseWithoutPinAndAbortOfOthersObjectsAreLies) {
  create(kAlice, object(1), 100);
  core->abort(kBob, {object(1)}, now);
  EXPECT_EQ(take(sink.closed).client, kBob);
  core->release(kCarol, {object(1)}, now, {});
  EXPECT_EQ(take(sink.closed).client, kCarol);
}

TEST_F(StoreCoreTest, ResultStoredTwiceKeepsBothViewsValid) {
  int64_t first = put(kAlice, object(1), 1000);
  int64_t second = put(kBob, object(1), 1000);  // As when a task is retried.
  EXPECT_NE(first, second);
  EXPECT_EQ(get_now(kBob, object(1)).offset, second);  // The copy that Bob pins already.
  EXPECT_EQ(get_now(kCarol, object(1)).offset, first);
  core->release(kBob, {object(1), object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 1);
  EXPECT_EQ(get_now(kBob, object(1)).offset, first);
}

TEST_F(StoreCoreTest, FullStoreMakesCreatorsWaitAndNamesTheHolders) {
  put(kAlice, object(1), 12 * kMiB);
  core->create(kBob, 5, {{object(2), 8 * kMiB, worker(kBob)}}, true, now);
  EXPECT_TRUE(sink.created.empty());
  pass(4'999'999);
  EXPECT_TRUE(sink.created.empty());
  pass(1);
  Error error = take(sink.created).offsets.error();
  EXPECT_EQ(error.code, Code::kObjectStoreFull);
  EXPECT_THAT(error.message, HasSubstr("8.0 MiB wanted"));
  EXPECT_THAT(error.message, HasSubstr("12.0 MiB of 16.0 MiB used"));
  EXPECT_THAT(error.message,
              HasSubstr(worker(kAlice).hex().substr(0, 16) + " (pid 100) 12.0 MiB in 1 objects"));
  EXPECT_TRUE(core->contains(object(1)));  // Primary copies are never evicted.
}

TEST_F(StoreCoreTest, WaitingCreatorGetsRoomAsSoonAsThereIsSome) {
  put(kAlice, object(1), 12 * kMiB);
  core->create(kBob, 5, {{object(2), 8 * kMiB, worker(kBob)}}, true, now);
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_TRUE(sink.created.empty());  // A primary copy is not evicted, even without pins.
  core->free({object(1)}, now);
  EXPECT_TRUE(take(sink.created).offsets);
}

TEST_F(StoreCoreTest, ObjectThatCanNeverFitFailsAtOnce) {
  core->create(kAlice, 1, {{object(1), 17 * kMiB, {}}}, true, now);
  EXPECT_THAT(take(sink.created).offsets.error().message, HasSubstr("can never fit"));
  EXPECT_EQ(create_error(kAlice, object(1), -5).code, Code::kInvalid);
  EXPECT_EQ(create_error(kAlice, object(1), INT64_MAX).code, Code::kObjectStoreFull);
}

TEST_F(StoreCoreTest, FreeOfAnObjectThatIsBeingFetchedHoldsHoweverLongTheFetchTakes) {
  Source far{node(1), "10.0.0.2", 7, 100};
  core->get(kAlice, 1, {{object(1), {far}}}, -1, now, 0);
  take(sink.fetches);
  core->free({object(1)}, now);
  pass(10'000'000);
  put(kFetcher, object(1), 100);
  EXPECT_EQ(take(sink.got).answers[0].error.code, Code::kObjectLost);
  core->release(kFetcher, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);  // Nor was it asked for a second time.
}

TEST_F(StoreCoreTest, WhatIsFetchedForAFinishedJobIsFreedHoweverLongTheFetchTakes) {
  Source far{node(1), "10.0.0.2", 7, 100};
  core->get(kAlice, 1, {{object(1), {far}}, {object(2, 5), {far}}}, -1, now, 0);
  sink.fetches.clear();
  core->free_owned_by({{}, {job_id_from_int(5)}, {}}, now);
  pass(100'000'000);
  core->free_owned_by({{worker(kBob)}, {job_id_from_int(6)}, {}}, now);
  put(kFetcher, object(1), 100);
  put(kFetcher, object(2, 5), 100);
  const auto answers = take(sink.got).answers;
  EXPECT_TRUE(answers[0].found);
  EXPECT_EQ(answers[1].error.code, Code::kObjectLost);
  core->release(kFetcher, {object(1), object(2, 5)}, now, {});
  EXPECT_EQ(core->stats().objects, 1);
}

TEST_F(StoreCoreTest, WhatIsFetchedOfAnOwnerThatHasGoneIsFreedHoweverLongTheFetchTakes) {
  Source far{node(1), "10.0.0.2", 7, 100};
  const WorkerId owner = worker(77);
  core->get(kAlice, 1, {{object(1), {far}}}, -1, now, 0);
  take(sink.fetches);
  pass(30'000'000);
  core->free_owned_by({{owner}, {}, {}}, now);
  pass(100'000'000);
  core->free_owned_by({{worker(78)}, {}, {}}, now);  // The time when older ones are forgotten.
  core->create(kFetcher, 1, {{object(1), 100, owner}}, true, now);
  const int64_t offset = take(sink.created).offsets->at(0);
  core->seal(kFetcher, {{object(1), offset, 100, 0, owner}}, {}, now);
  EXPECT_EQ(take(sink.got).answers[0].error.code, Code::kObjectLost);
  core->release(kFetcher, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(StoreCoreTest, ACopyOfWhichAProcessHasToldTheOwnerStaysWhenAnotherOneEnds) {
  Source far{node(1), "10.0.0.2", 7, 100};
  for (ClientId client : {kAlice, kBob}) core->get(client, 1, {{object(1), {far}}}, -1, now, 0);
  take(sink.fetches);
  put(kFetcher, object(1), 100);
  core->release(kFetcher, {object(1)}, now, {});
  EXPECT_TRUE(take(sink.got).answers[0].untold);
  EXPECT_TRUE(take(sink.got).answers[0].untold);
  core->release(kAlice, {}, now, {object(1)});
  EXPECT_FALSE(get_now(kCarol, object(1)).untold);
  core->client_gone(kBob, now);
  core->release(kAlice, {object(1)}, now, {});
  core->release(kCarol, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 1);
  core->free({object(1)}, now);
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(StoreCoreTest, ACopyOfWhichNoOwnerWasToldGoesWithItsLastPin) {
  Source far{node(1), "10.0.0.2", 7, 100};
  core->get(kAlice, 1, {{object(1), {far}}}, -1, now, 0);
  take(sink.fetches);
  put(kFetcher, object(1), 100);
  core->release(kFetcher, {object(1)}, now, {});
  EXPECT_TRUE(take(sink.got).answers[0].untold);
  core->release(kBob, {}, now, {object(1)});  // Bob does not hold it, and knows nothing of it.
  core->release(kAlice, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
  put(kAlice, object(2), 100);
  EXPECT_FALSE(get_now(kBob, object(2)).untold);  // It is no copy.
  core->release(kBob, {object(2)}, now, {});
}

// The result of a task is sealed for another process.
TEST_F(StoreCoreTest, AResultGoesWithAProcessThatEndsBeforeItReportsIt) {
  seal_for_carol(kAlice, object(1));
  seal_for_carol(kAlice, object(2));
  EXPECT_FALSE(get_now(kBob, object(1)).untold);  // It is no copy: Alice reports it.
  core->release(kBob, {object(1)}, now, {});
  core->release(kAlice, {}, now, {object(2)});
  core->client_gone(kAlice, now);
  EXPECT_FALSE(core->contains(object(1)));
  EXPECT_TRUE(core->contains(object(2)));
  // The next attempt of the task.
  seal_for_carol(kBob, object(1));
  core->release(kBob, {}, now, {object(1)});
  core->release(kBob, {object(1)}, now, {});
  EXPECT_TRUE(core->contains(object(1)));
}

TEST_F(StoreCoreTest, AResultThatAnyAttemptHasReportedStays) {
  for (ClientId client : {kAlice, kBob}) seal_for_carol(client, object(1));
  core->release(kBob, {}, now, {object(1)});
  core->release(kBob, {object(1)}, now, {});
  core->client_gone(kAlice, now);
  EXPECT_TRUE(core->contains(object(1)));
  core->free({object(1)}, now);
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(StoreCoreTest, AFreeMeansTheObjectThatIsSeenAndTheOneThatIsBeingCreated) {
  put(kAlice, object(1), 100);
  int64_t offset = create(kBob, object(1), 100);
  core->free({object(1)}, now);
  core->release(kAlice, {object(1)}, now, {});
  core->seal(kBob, {{object(1), offset, 100, 0, worker(kBob)}}, {}, now);
  core->release(kBob, {object(1)}, now, {});
  EXPECT_EQ(core->stats().objects, 0);
}

TEST_F(StoreCoreTest, FetchedCopiesAreEvictedOldestFirstButNeverWhenPinned) {
  for (uint32_t n = 1; n <= 3; n++) {
    put(kFetcher, object(n), 4 * kMiB);
    EXPECT_TRUE(get_now(kCarol, object(n)).found);
    core->release(kCarol, {}, now, {object(n)});
    core->release(kCarol, {object(n)}, now, {});
    core->release(kFetcher, {object(n)}, now, {});
  }
  EXPECT_TRUE(get_now(kBob, object(1)).found);  // Makes it the most recently used, and pins it.
  put(kAlice, object(9), 8 * kMiB);
  EXPECT_TRUE(core->contains(object(1)));
  EXPECT_FALSE(core->contains(object(2)));
  core->release(kBob, {object(1)}, now, {});
  put(kAlice, object(10), 4 * kMiB);
  EXPECT_FALSE(core->contains(object(3)));
  EXPECT_TRUE(core->contains(object(1)));
  EXPECT_EQ(create_error(kAlice, object(11), 5 * kMiB).code, Code::kObjectStoreFull);
  EXPECT_TRUE(core->contains(object(1)));  // Evicting it would not have made enough room.
}

TEST_F(StoreCoreTest, OneFetchServesAllGetters) {
  Source far{node(1), "10.0.0.2", 7, 100};
  core->get(kAlice, 1, {{object(1), {far}}}, -1, now, 0);
  core->get(kBob, 2, {{object(1), {far}}}, -1, now, 0);
  auto fetch = take(sink.fetches);
  EXPECT_EQ(fetch.id, object(1));
  EXPECT_EQ(fetch.sources.at(0).port, 7);
  put(kFetcher, object(1), 100);
  EXPECT_TRUE(take(sink.got).answers[0].found);
  EXPECT_TRUE(take(sink.got).answers[0].found);
  core->release(kFetcher, {object(1)}, now, {});
  EXPECT_TRUE(core->contains(object(1)));
}

TEST_F(StoreCoreTest, FailedFetchSaysWhy) {
  core->get(kAlice, 1, {{object(1), {{node(1), "10.0.0.2", 7, 100}}}}, -1, now, 0);
  take(sink.fetches);
  core->on_fetch_failed(object(1), make_error(Code::kObjectLost, "10.0.0.2:7 refused"), now);
  auto got = take(sink.got);
  EXPECT_EQ(got.answers[0].error.code, Code::kObjectLost);
  EXPECT_EQ(got.answers[0].error.message, "10.0.0.2:7 refused");
  core->get(kAlice, 1, {{object(1), {{node(1), "10.0.0.2", 7, 100}}}}, -1, now, 0);
  take(sink.fetches);  // A get after the failure starts a new fetch.
  core->client_gone(kAlice, now);
}

TEST_F(StoreCoreTest, DeadOwnersAndJobsFreeTheirObjects) {
  put(kAlice, object(1, 1), 100);
  put(kBob, object(2, 1), 100);
  put(kBob, object(3, 2), 100);
  core->client_gone(kAlice, now);
  core->free_owned_by({{worker(kAlice)}, {}, {}}, now);
  EXPECT_FALSE(core->contains(object(1, 1)));
  EXPECT_TRUE(core->contains(object(2, 1)));
  core->free_owned_by({{}, {job_id_from_int(1)}, {}}, now);
  EXPECT_FALSE(core->contains(object(2, 1)));
  EXPECT_TRUE(core->contains(object(3, 2)));
  EXPECT_EQ(core->stats().objects, 2);  // Bob still pins the freed object 2.
}

// A task may end a moment after its owner did. Nobody would free the results that it seals in
// between, so they go when the process that sealed them does.
TEST_F(StoreCoreTest, ObjectsSealedForADeadOwnerAreFreedWithTheirSealer) {
  const ObjectId late = object(1, 1), later = object(2, 1), kept = object(3, 1);
  auto seal_for = [&](const ObjectId& id, const WorkerId& owner) {
    core->create(kBob, 1, {{id, 100, owner}}, false, now);
    core->seal(kBob, {{id, take(sink.created).offsets->at(0), 100, 0, owner}}, {}, now);
  };
  core->create(kBob, 1, {{late, 100, worker(kAlice)}}, false, now);
  const int64_t offset = take(sink.created).offsets->at(0);
  core->client_gone(kAlice, now);
  core->free_owned_by({{worker(kAlice)}, {}, {}}, now);
  core->free_owned_by({{worker(kAlice)}, {}, {}}, now);  // A repeated message does no harm.
  core->seal(kBob, {{late, offset, 100, 0, worker(kAlice)}}, {}, now);
  seal_for(later, worker(kAlice));
  seal_for(kept, worker(kBob));
  core->client_gone(kBob, now);
  EXPECT_FALSE(core->contains(late));
  EXPECT_FALSE(core->contains(later));
  EXPECT_TRUE(core->contains(kept));
  EXPECT_EQ(core->stats().objects, 1);
}

// The workers of a node that is lost cannot say what they own any more.
TEST_F(StoreCoreTest, WhatTheWorkersOfADeadNodeOwnIsFreed) {
  Rng rng(5);
  const WorkerId on_first = make_worker_id(node(1), rng), on_second = make_worker_id(node(2), rng);
  auto seal_for = [&](const ObjectId& id, const WorkerId& owner) {
    core->create(kBob, 1, {{id, 100, owner}}, false, now);
    core->seal(kBob, {{id, take(sink.created).offsets->at(0), 100, 0, owner}}, {}, now);
    core->release(kBob, {id}, now, {id});
  };
  seal_for(object(1, 1), on_first);
  seal_for(object(2, 1), on_second);
  seal_for(object(3, 1), driver_worker_id(job_id_from_int(1)));
  core->free_owned_by({{}, {}, {node(1)}}, now);
  EXPECT_FALSE(core->contains(object(1, 1)));
  EXPECT_TRUE(core->contains(object(2, 1)));
  EXPECT_TRUE(core->contains(object(3, 1)));
  seal_for(object(4, 1), on_first);
  EXPECT_FALSE(core->contains(object(4, 1)));
  EXPECT_EQ(core->stats().objects, 2);
}

TEST_F(StoreCoreTest, RoomIsShownOnlyWhenItsPagesExist) {
  StoreCore::Options options;
  options.capacity = 16 * kMiB;
  options.reserve_step = kMiB;
  options.create_wait_us = 3'000'000;
  core.emplace(options, sink);
  ASSERT_TRUE(core->attach(kAlice, worker(kAlice), job_id_from_int(1), 1));
  core->create(kAlice, 1, {{object(1), 3 * kMiB, {}}}, true, now);
  EXPECT_TRUE(sink.created.empty());
  EXPECT_EQ(take(sink.reserves), 3 * kMiB);
  core->on_reserved(kMiB, make_error(Code::kObjectStoreFull, "the file system of /x is full"), now);
  EXPECT_TRUE(sink.created.empty());  // The creator waits for room, or for more pages.
  pass(1'000'000);
  EXPECT_EQ(take(sink.reserves), 3 * kMiB);
  core->on_reserved(2 * kMiB, make_error(Code::kObjectStoreFull, "the file system of /x is full"),
                    now);
  core->check_invariants();
  pass(1'000'000);
  take(sink.reserves);
  core->on_reserved(2 * kMiB, make_error(Code::kObjectStoreFull, "the file system of /x is full"),
                    now);
  now.steady_us += 1'000'000 - 1;
  core->tick(now);
  pass(1);
  while (!sink.reserves.empty()) {
    take(sink.reserves);
    core->on_reserved(2 * kMiB, make_error(Code::kObjectStoreFull, "the file system of /x is full"),
                      now);
  }
  pass(1'000'000);
  EXPECT_THAT(take(sink.created).offsets.error().message,
              HasSubstr("the file system of /x is full"));
  EXPECT_EQ(put(kAlice, object(2), 2 * kMiB), 0);  // The pages that exist remain usable.
}

TEST_F(StoreCoreTest, TightStoreLeasesNoExtents) {
  put(kAlice, object(1), 12 * kMiB);
  core->lease_extent(kBob, 1, 256 * 1024, now);
  EXPECT_EQ(take(sink.leased).extent.error().code, Code::kObjectStoreFull);
}

// Random operations and crashes of several clients; the core checks its invariants after every
// event.
TEST_F(StoreCoreTest, InvariantsHoldAfterRandomEvents) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    Recorder recorder;
    StoreCore::Options options;
    options.capacity = 4 * kMiB;
    options.reserve_step = kMiB / 2;
    StoreCore random(options, recorder);
    struct Known {
      std::vector<std::pair<ObjectId, Range>> created;
      std::vector<ObjectId> pins;
      std::vector<LeasedExtent> extents;
    };
    std::map<ClientId, Known> clients;
    std::map<CallId, std::pair<ObjectId, int64_t>> creating;
    std::map<CallId, ObjectId> getting;
    ClientId next_client = kFirstClient;
    CallId next_call = 1;
    Now at{1, 0};
    for (int step = 0; step < 2000; step++) {
      at.steady_us += static_cast<int64_t>(rng.below(100'000));
      random.tick(at);
      if (clients.size() < 4) {
        clients[next_client];
        ASSERT_TRUE(random.attach(next_client, worker(next_client), job_id_from_int(1), 1));
        next_client++;
      }
      auto it = std::next(clients.begin(), static_cast<int64_t>(rng.below(clients.size())));
      auto& [client, known] = *it;
      ObjectId id = object(static_cast<uint32_t>(rng.below(40)));
      switch (rng.below(8)) {
        case 0: {
          int64_t size = static_cast<int64_t>(rng.below(kMiB));
          creating[next_call] = {id, size};
          random.create(client, next_call++, {{id, size, worker(client)}}, rng.chance(0.5), at);
          break;
        }
        case 1:
          if (!known.created.empty()) {
            auto [object_id, place] = known.created.back();
            known.created.pop_back();
            bool holds = std::count(known.pins.begin(), known.pins.end(), object_id) > 0;
            if (holds || rng.chance(0.2)) {
              random.abort(client, {object_id}, at);
            } else {
              random.seal(client, {{object_id, place.offset, place.size, 0, worker(client)}}, {},
                          at);
              known.pins.push_back(object_id);
            }
          }
          break;
        case 2:
          getting[next_call] = id;
          random.get(client, next_call++, {{id, {}}}, rng.chance(0.3) ? -1 : 200'000, at, 0);
          break;
        case 3:
          if (!known.pins.empty()) {
            random.release(client, {known.pins.back()}, at, {});
            known.pins.pop_back();
          }
          break;
        case 4: random.free({id}, at); break;
        case 5: random.lease_extent(client, next_call++, 64 * 1024, at); break;
        case 6:
          if (!known.extents.empty()) {
            LeasedExtent extent = known.extents.back();
            known.extents.pop_back();
            bool holds = std::count(known.pins.begin(), known.pins.end(), id) > 0;
            std::vector<SealItem> items;
            if (!holds)
              items.push_back({id, extent.range.offset + 128, 1000, extent.id, worker(client)});
            random.seal(client, items, {extent.id}, at);
            if (!holds) known.pins.push_back(id);
          }
          break;
        case 7:
          if (rng.chance(0.1)) {
            random.client_gone(client, at);
            clients.erase(it);
          }
          break;
      }
      while (!recorder.reserves.empty()) random.on_reserved(take(recorder.reserves), Status(), at);
      while (!recorder.created.empty()) {
        auto created = take(recorder.created);
        auto [object_id, size] = creating.at(created.call);
        if (created.offsets && clients.count(created.client))
          clients[created.client].created.push_back(
              {object_id, Range{created.offsets->at(0), size}});
      }
      while (!recorder.leased.empty()) {
        auto leased = take(recorder.leased);
        if (leased.extent) clients[leased.client].extents.push_back(*leased.extent);
      }
      while (!recorder.got.empty()) {
        auto got = take(recorder.got);
        if (got.answers[0].found) clients.at(got.client).pins.push_back(getting.at(got.call));
      }
      ASSERT_TRUE(recorder.closed.empty()) << recorder.closed.front().why.message;
      random.check_invariants();
    }
    for (auto& [client, known] : clients) random.client_gone(client, at);
    for (uint32_t n = 0; n < 40; n++) random.free({object(n)}, at);
    random.check_invariants();
    EXPECT_EQ(random.stats().allocated, 0);
  }
}

}  // namespace
}  // namespace rt::store
