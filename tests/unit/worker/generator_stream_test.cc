// The items of a generator task at its owner: their order, the end of either side, backpressure,
// and items that a peer must not send.
#include "worker/core/generator_stream.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

using Arrival = GeneratorStream::Arrival;
using Next = GeneratorStream::Next;

struct FreedRecorder : RefSink {
  std::vector<ObjectId> freed;
  void add_borrower(const proto::WorkerAddress&, const std::vector<ObjectId>&,
                    const WorkerId&) override {}
  void remove_borrower(const proto::WorkerAddress&, const ObjectId&, uint32_t) override {}
  void free_object(ObjectEntry& entry) override { freed.push_back(entry.id); }
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId&) override {}
};

class GeneratorStreamTest : public ::testing::Test {
 protected:
  GeneratorStreamTest()
      : table(sink, WorkerId::random(rng)), streams(table), task(TaskId::random(rng)) {}
  ~GeneratorStreamTest() override {
    streams.check_invariants();
    table.drain_releases();
    table.check_invariants();
  }
  GeneratorStream& open(int64_t limit = 0) { return streams.open(task, limit); }
  void arrive(GeneratorStream& stream, uint32_t index) {
    Ref item;
    ASSERT_EQ(stream.arrive(index, &item), Arrival::kItem);
    ASSERT_EQ(item.id(), make_object_id(task, index + 2));
    streams.check_invariants();
  }
  Rng rng{42};
  FreedRecorder sink;
  RefTable table;
  GeneratorStreams streams;
  TaskId task;
};

TEST_F(GeneratorStreamTest, ItemsAreTakenInTheOrderTheyCame) {
  GeneratorStream& stream = open();
  for (uint32_t i = 0; i < 3; ++i) arrive(stream, i);
  Ref item;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(stream.take(&item), Next::kItem);
    EXPECT_EQ(item.id(), make_object_id(task, i + 2));
  }
  EXPECT_EQ(stream.take(&item), Next::kPending);
  EXPECT_FALSE(stream.end());
  EXPECT_EQ(stream.take(&item), Next::kEnd);
  streams.ended(task, true);
  EXPECT_NE(streams.find(task), nullptr) << "its consumer may still ask";
  streams.drop(task);
  EXPECT_EQ(streams.find(task), nullptr);
}

TEST_F(GeneratorStreamTest, WhatIsNotTheNextItemIsRefused) {
  GeneratorStream& stream = open();
  Ref item;
  EXPECT_EQ(stream.arrive(1, &item), Arrival::kRefused);
  arrive(stream, 0);
  for (uint32_t wrong : {0u, 2u, 7u, kMaxItems, UINT32_MAX})
    EXPECT_EQ(stream.arrive(wrong, &item), Arrival::kRefused);
  (void)stream.end();
  EXPECT_EQ(stream.arrive(1, &item), Arrival::kRefused) << "after the end";
  EXPECT_FALSE(item);
  EXPECT_EQ(stream.received(), 1u);
}

TEST_F(GeneratorStreamTest, AnErrorIsOneMoreItem) {
  GeneratorStream& stream = open();
  arrive(stream, 0);
  Ref error = stream.end_with_error();
  EXPECT_EQ(error.id(), make_object_id(task, 3));
  Ref item;
  ASSERT_EQ(stream.take(&item), Next::kItem);
  ASSERT_EQ(stream.take(&item), Next::kItem);
  EXPECT_EQ(item.id(), error.id());
  EXPECT_EQ(stream.take(&item), Next::kEnd);
}

TEST_F(GeneratorStreamTest, AnAwaitedRefBecomesTheNextItemOrTheEnd) {
  GeneratorStream& stream = open();
  Ref awaited, again, item;
  ASSERT_EQ(stream.peek(&awaited), Next::kPending);
  ASSERT_EQ(stream.peek(&again), Next::kPending);
  EXPECT_EQ(awaited.entry(), again.entry());
  EXPECT_EQ(stream.take(&item), Next::kPending);
  ASSERT_EQ(stream.arrive(0, &item), Arrival::kItem);
  EXPECT_EQ(item.entry(), awaited.entry());
  ASSERT_EQ(stream.peek(&item), Next::kItem);
  EXPECT_EQ(item.entry(), awaited.entry());
  ASSERT_EQ(stream.take(&item), Next::kItem);
  ASSERT_EQ(stream.peek(&awaited), Next::kPending);
  EXPECT_EQ(stream.end().entry(), awaited.entry());
  EXPECT_EQ(stream.peek(&item), Next::kEnd);
}

TEST_F(GeneratorStreamTest, ADroppedStreamFreesItsItemsAndWantsNoMore) {
  GeneratorStream& stream = open();
  arrive(stream, 0);
  arrive(stream, 1);
  Ref taken, item;
  ASSERT_EQ(stream.take(&taken), Next::kItem);
  streams.drop(task);
  table.drain_releases();
  EXPECT_EQ(sink.freed, std::vector<ObjectId>{make_object_id(task, 3)})
      << "the one that was taken stays";
  EXPECT_EQ(stream.arrive(2, &item), Arrival::kUnwanted);
  EXPECT_EQ(stream.arrive(9, &item), Arrival::kRefused);
  EXPECT_FALSE(stream.end_with_error());
  streams.ended(task, true);
  EXPECT_EQ(streams.size(), 0u);
}

TEST_F(GeneratorStreamTest, CancellingGivesUpWhatWasNotTaken) {
  GeneratorStream& stream = open();
  for (uint32_t i = 0; i < 3; ++i) arrive(stream, i);
  Ref item;
  ASSERT_EQ(stream.take(&item), Next::kItem);
  stream.cancel();
  EXPECT_EQ(stream.take(&item), Next::kPending);
  EXPECT_EQ(stream.arrive(3, &item), Arrival::kUnwanted);
  Ref error = stream.end_with_error();
  ASSERT_EQ(stream.take(&item), Next::kItem);
  EXPECT_EQ(item.entry(), error.entry());
  stream.cancel();  // Too late: the stream has ended.
  EXPECT_EQ(stream.take(&item), Next::kEnd);
}

TEST_F(GeneratorStreamTest, AProducerAtItsLimitHearsOfEveryItemTaken) {
  GeneratorStream& stream = open(2);
  Ref item;
  arrive(stream, 0);
  arrive(stream, 1);
  EXPECT_FALSE(stream.acknowledge());
  (void)stream.take(&item);
  EXPECT_EQ(stream.acknowledge(), 1u);
  EXPECT_FALSE(stream.acknowledge()) << "once";
  arrive(stream, 2);
  (void)stream.take(&item);
  EXPECT_EQ(stream.acknowledge(), 2u);
}

TEST_F(GeneratorStreamTest, ARepeatedAttemptHearsOfWhatWasTakenAfterItWasSent) {
  GeneratorStream& stream = open(2);
  Ref item;
  arrive(stream, 0);
  arrive(stream, 1);
  (void)stream.take(&item);
  EXPECT_EQ(stream.acknowledge(), 1u);
  arrive(stream, 2);
  // The attempt was sent when nothing was taken, and waits after it has skipped two items.
  stream.attempt_sent({}, 7, 0);
  EXPECT_EQ(stream.seq, 7u);
  EXPECT_EQ(stream.acknowledge(), 1u);
}

TEST_F(GeneratorStreamTest, AProducerWithRoomHearsOfHalfItsLimit) {
  GeneratorStream& stream = open(8);
  Ref item;
  for (uint32_t i = 0; i < 6; ++i) arrive(stream, i);
  for (uint32_t taken = 1; taken <= 4; ++taken) {
    (void)stream.take(&item);
    EXPECT_EQ(stream.acknowledge(), taken == 4 ? std::optional(4u) : std::nullopt);
  }
}

TEST_F(GeneratorStreamTest, ItemsTakenBeforeTheLimitIsReachedAreToldWhenItIs) {
  GeneratorStream& stream = open(8);
  Ref item;
  arrive(stream, 0);
  (void)stream.take(&item);
  EXPECT_FALSE(stream.acknowledge());
  for (uint32_t i = 1; i < 8; ++i) arrive(stream, i);
  EXPECT_EQ(stream.acknowledge(), 1u) << "the producer, eight ahead as far as it knows, waits";
}

TEST_F(GeneratorStreamTest, WithoutALimitNobodyIsTold) {
  GeneratorStream& stream = open();
  Ref item;
  arrive(stream, 0);
  (void)stream.take(&item);
  EXPECT_FALSE(stream.acknowledge());
}

TEST_F(GeneratorStreamTest, ADroppedStreamLetsItsProducerGoOn) {
  GeneratorStream& stream = open(1);
  arrive(stream, 0);
  streams.drop(task);
  EXPECT_EQ(stream.acknowledge(), kAllItems);
}

TEST_F(GeneratorStreamTest, ASharedLimitIsToldOfEachItem) {
  GeneratorStream& stream = open(kSharedLimit);
  Ref item;
  arrive(stream, 0);
  arrive(stream, 1);
  (void)stream.take(&item);
  EXPECT_EQ(stream.acknowledge(), 1u);
  (void)stream.take(&item);
  EXPECT_EQ(stream.acknowledge(), 2u);
}

TEST_F(GeneratorStreamTest, ADynamicTasksItemsAreTakenTogether) {
  GeneratorStream& stream = open();
  arrive(stream, 0);
  arrive(stream, 1);
  EXPECT_EQ(stream.take_all().size(), 2u);
  (void)stream.end();
  streams.ended(task, false);
  EXPECT_EQ(streams.size(), 0u);
}

}  // namespace
}  // namespace rt::worker
