// How objects of other nodes come into the arena.
#include <gmock/gmock.h>

#include "tests/unit/object_store/fetches_fixture.h"

namespace rt::store {
namespace {

using ::testing::HasSubstr;

TEST_F(FetchesTest, CopyIsSealedWhenAllChunksHaveArrivedInAnyOrder) {
  start({order(1, {1})});
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.1"}));
  EXPECT_TRUE(fetches->is_receiving(object(1)));
  connected(1);
  EXPECT_EQ(sink.take(), Lines({"describe 1"}));
  described(1, 250);
  EXPECT_EQ(sink.take(), Lines({"create 1: 250 bytes"}));
  created(1, 4096);
  EXPECT_EQ(sink.take(), Lines({"pull 1: 0+100 to 4096", "pull 1: 100+100 to 4196"}));
  pulled(1, 1, 250);
  EXPECT_EQ(sink.take(), Lines({"pull 1: 200+50 to 4296"}));
  pulled(1, 2, 250);
  EXPECT_TRUE(sink.is_empty());
  pulled(1, 0, 250);
  EXPECT_EQ(sink.take(), Lines({"seal at 4096: 250 bytes", "end 1: released"}));
  EXPECT_FALSE(fetches->is_receiving(object(1)));
  EXPECT_TRUE(fetches->is_idle());
  EXPECT_EQ(fetches->next_tick_us(), -1);
}

TEST_F(FetchesTest, EmptyObjectIsSealedOnceItHasRoom) {
  start({order(1, {1})});
  connected(1);
  described(1, 0);
  sink.take();
  created(1, 0);
  EXPECT_EQ(sink.take(), Lines({"seal at 0: 0 bytes", "end 1: released"}));
}

TEST_F(FetchesTest, SourcesAreAskedInTheirOrderUntilNoneIsLeft) {
  start({order(1, {3, 1, 2})});
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.3"}));
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.3:7 failed: no way", "connect 1 to 10.0.0.1"}));
  connected(1);
  sink.take();
  described(1, make_error(Code::kNotFound, "it has none"));
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it has none", "connect 1 to 10.0.0.2"}));
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.2:7 failed: no way", "fail", "end 1: without room"}));
  EXPECT_EQ(sink.last_error.code, Code::kObjectLost);
  EXPECT_THAT(sink.last_error.message,
              HasSubstr("from any of 3 nodes; the last, 10.0.0.2:7: no way"));
}

TEST_F(FetchesTest, NodeThatDoesNotAnswerIsAskedAgainForAsLongAsThePatienceLasts) {
  start({order(1, {1, 2})});
  for (int round = 0; round < 2; round++) {
    EXPECT_EQ(sink.take().back(), "connect 1 to 10.0.0.1");
    pass(5 * kSecond);
    connect_failed(1, Code::kTimeout);
    EXPECT_EQ(sink.take().back(), "connect 1 to 10.0.0.2");
    connect_failed(1, Code::kUnavailable);
  }
  EXPECT_EQ(sink.take(), Lines({"10.0.0.2:7 failed: no way", "fail", "end 1: without room"}));
}

TEST_F(FetchesTest, PatienceBeginsAnewWithEachAnswer) {
  start({order(1, {1, 2})});
  pass(9 * kSecond);
  connect_failed(1, Code::kTimeout);
  connected(1);
  described(1, 100);
  created(1, 4096);
  pass(kSecond / 2);
  sink.take();
  pass(kSecond / 2);
  EXPECT_EQ(sink.take(), Lines({"close 1: no progress for 1000 ms"}));
  pulled(1, 0, broken());
  // The first node has not answered for ten seconds, but the second one did a second ago.
  EXPECT_EQ(sink.take(), Lines({"10.0.0.2:7 failed: it broke", "connect 1 to 10.0.0.1"}));
}

TEST_F(FetchesTest, NodeThatRefusesIsNotAskedAgain) {
  start({order(1, {1, 2})});
  connect_failed(1, Code::kTimeout);
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take().back(), "connect 1 to 10.0.0.1");
  // The first one has ended meanwhile: nobody is left who may only hang.
  connect_failed(1, Code::kUnavailable);
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: no way", "connect 1 to 10.0.0.2",
                                "10.0.0.2:7 failed: no way", "fail", "end 1: without room"}));
}

TEST_F(FetchesTest, ChunksThatASourceDidNotDeliverComeFromTheNextOne) {
  receive(1, 300, {1, 2});
  pulled(1, 0, 300);
  EXPECT_EQ(sink.take(), Lines({"pull 1: 200+100 to 4296"}));
  pulled(1, 1, missing());
  // The other call is still writing to the arena, so that the next source has to wait.
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it has none"}));
  pulled(1, 2, missing());
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.2"}));
  connected(1);
  described(1, 300);
  // The room is there, and so is the first chunk.
  EXPECT_EQ(sink.take(),
            Lines({"describe 1", "pull 1: 100+100 to 4196", "pull 1: 200+100 to 4296"}));
  pulled(1, 1, 300);
  pulled(1, 2, 300);
  EXPECT_EQ(sink.take(), Lines({"seal at 4096: 300 bytes", "end 1: released"}));
}

TEST_F(FetchesTest, AnObjectIsNotLostWhileOneOfItsNodesMayOnlyHang) {
  start({order(1, {1, 2})});
  pass(10 * kSecond);
  connect_failed(1, Code::kTimeout);
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take().back(), "end 1: without room");
  EXPECT_EQ(sink.last_error.code, Code::kTimeout);
  EXPECT_THAT(sink.last_error.message, HasSubstr("the last, 10.0.0.2:7: no way"));

  // It took the connection, and then nothing came.
  start({order(2, {1})});
  connected(2);
  pass(kSecond);
  described(2, make_error(Code::kTimeout, "no progress"));
  connected(2);
  pass(10 * kSecond);
  described(2, make_error(Code::kTimeout, "no progress"));
  sink.take();
  EXPECT_EQ(sink.last_error.code, Code::kTimeout);
}

TEST_F(FetchesTest, NodeThatHasLeftIsNotAskedAgain) {
  receive(1, 300, {1, 2});
  pulled(1, 0, 300);
  sink.take();
  fetches->nodes_gone({node(1)});
  EXPECT_EQ(sink.take(), Lines({"close 1: its node has left the cluster"}));
  pulled(1, 1, broken());
  pulled(1, 2, broken());
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it broke", "connect 1 to 10.0.0.2"}));
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.2:7 failed: no way", "fail", "end 1: aborted"}));
  EXPECT_EQ(sink.last_error.code, Code::kObjectLost);

  start({order(2, {1, 3})});
  EXPECT_EQ(sink.take(), Lines({"connect 2 to 10.0.0.3"}));
  fetches->nodes_gone({node(3)});
  connect_failed(2, Code::kTimeout);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.3:7 failed: no way", "fail", "end 2: without room"}));
  EXPECT_EQ(sink.last_error.code, Code::kObjectLost);

  start({order(3, {1, 3})});
  EXPECT_EQ(sink.take(), Lines({"fail", "end 3: without room"}));
  EXPECT_EQ(sink.last_error.code, Code::kObjectLost);
  EXPECT_THAT(sink.last_error.message, HasSubstr("all 2 nodes that had it have left"));
}

// Another fetch may have closed the connection that they share.
TEST_F(FetchesTest, SourceWhoseConnectionEndedWhileChunksCameIsAskedAgain) {
  receive(1, 300, {1});
  pulled(1, 0, 300);
  sink.take();
  pulled(1, 1, broken());
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it broke"}));
  pulled(1, 2, broken());
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.1"}));
  connected(1);
  described(1, 300);
  EXPECT_EQ(sink.take(),
            Lines({"describe 1", "pull 1: 100+100 to 4196", "pull 1: 200+100 to 4296"}));
  // This time nothing came.
  pulled(1, 1, broken());
  pulled(1, 2, broken());
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it broke", "fail", "end 1: aborted"}));
}

TEST_F(FetchesTest, ChunkThatArrivesAfterAnotherFailedIsKept) {
  receive(1, 200, {1, 2});
  pulled(1, 0, broken());
  sink.take();
  pulled(1, 1, 200);
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.2"}));
  connected(1);
  described(1, 200);
  EXPECT_EQ(sink.take(), Lines({"describe 1", "pull 1: 0+100 to 4096"}));
  pulled(1, 0, 200);
  EXPECT_EQ(sink.take(), Lines({"seal at 4096: 200 bytes", "end 1: released"}));
}

TEST_F(FetchesTest, CopyOfAnotherSizeIsNotMixedIn) {
  receive(1, 200, {1, 2, 3});
  pulled(1, 0, 200);
  pulled(1, 1, 201);
  EXPECT_EQ(sink.take(),
            Lines({"10.0.0.1:7 failed: its copy changed size", "connect 1 to 10.0.0.2"}));
  connected(1);
  described(1, 199);
  EXPECT_EQ(sink.take(),
            Lines({"describe 1", "10.0.0.2:7 failed: its copy has 199 bytes, another one 200",
                   "connect 1 to 10.0.0.3"}));
  connected(1);
  described(1, -1);
  EXPECT_EQ(sink.take(), Lines({"describe 1", "10.0.0.3:7 failed: it named a negative size", "fail",
                                "end 1: aborted"}));
}

TEST_F(FetchesTest, WithoutRoomTheFetchFailsWithTheReasonOfTheStore) {
  start({order(1, {1, 2})});
  connected(1);
  described(1, 50'000);
  sink.take();
  fetches->created(1, make_error(Code::kObjectStoreFull, "it never fits"), now);
  EXPECT_EQ(sink.take(), Lines({"fail", "end 1: without room"}));
  EXPECT_EQ(sink.last_error.code, Code::kObjectStoreFull);
}

// ---- the bound

TEST_F(FetchesTest, FetchesWaitUntilTheBytesUnderWayAllowThem) {
  start({order(1, {1}, 600), order(2, {1}, 500), order(3, {1}, 100)});
  // The third would fit, but does not pass the second.
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.1"}));
  EXPECT_FALSE(fetches->is_receiving(object(2)));
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: no way", "fail", "end 1: without room",
                                "connect 2 to 10.0.0.1", "connect 3 to 10.0.0.1"}));
}

TEST_F(FetchesTest, OneFetchIsAlwaysAllowed) {
  start({order(1, {1}, 5000), order(2, {1})});
  // Nobody knows the size of the second, but there are too many bytes under way already.
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.1"}));
}

TEST_F(FetchesTest, FetchOfUnknownSizeIsUnderWayToo) {
  start({order(1, {1}), order(2, {1}, 5000)});
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.1"}));
}

TEST_F(FetchesTest, FetchesOfRunningTasksComeFirst) {
  start({order(1, {1}, 800), order(2, {2}, 800), order(3, {3}, 800, true)});
  EXPECT_EQ(sink.take(), Lines({"connect 1 to 10.0.0.3"}));
  start({order(4, {4}, 800, true)});
  connect_failed(1, Code::kUnavailable);
  EXPECT_EQ(sink.take().back(), "connect 2 to 10.0.0.4");
  connect_failed(2, Code::kUnavailable);
  EXPECT_EQ(sink.take().back(), "connect 3 to 10.0.0.1");
}

// ---- other nodes

TEST_F(FetchesTest, PiecesAreServedAsSoonAsTheyHaveArrived) {
  start({order(1, {1})});
  connected(1);
  fetches->read(91, object(1), {0, 0});  // This asks for the size.
  described(1, 300);
  sink.take();
  created(1, 4096);
  fetches->read(92, object(1), {50, 100});
  fetches->read(93, object(1), {250, 51});
  EXPECT_EQ(sink.take(), Lines({"pull 1: 0+100 to 4096", "pull 1: 100+100 to 4196",
                                "serve reader 91: 4096+0 of 300", "refuse reader 93: invalid"}));
  pulled(1, 0, 300);
  EXPECT_EQ(sink.take(), Lines({"pull 1: 200+100 to 4296"}));
  pulled(1, 1, 300);
  EXPECT_EQ(sink.take(), Lines({"serve reader 92: 4146+100 of 300"}));
  piece_sent(1);
  piece_sent(1);
  pulled(1, 2, 300);
  EXPECT_EQ(sink.take(), Lines({"seal at 4096: 300 bytes", "end 1: released"}));
}

TEST_F(FetchesTest, RoomStaysUntilNobodyReadsIt) {
  receive(1, 100, {1});
  fetches->read(91, object(1), {0, 100});
  fetches->read(92, object(1), {0, 50});
  pulled(1, 0, 100);
  EXPECT_EQ(sink.take(), Lines({"serve reader 91: 4096+100 of 100",
                                "serve reader 92: 4096+50 of 100", "seal at 4096: 100 bytes"}));
  EXPECT_FALSE(fetches->is_receiving(object(1)));
  // The object may be wanted again before: its next fetch waits for the memory of this one.
  start({order(1, {2})});
  piece_sent(1);
  EXPECT_TRUE(sink.is_empty());
  piece_sent(1);
  EXPECT_EQ(sink.take(), Lines({"end 1: released", "connect 2 to 10.0.0.2"}));
}

TEST_F(FetchesTest, RoomOfAFailedFetchStaysUntilNobodyReadsIt) {
  receive(1, 200, {1});
  fetches->read(91, object(1), {0, 100});
  fetches->read(92, object(1), {100, 100});
  pulled(1, 0, 200);
  EXPECT_EQ(sink.take(), Lines({"serve reader 91: 4096+100 of 200"}));
  pulled(1, 1, missing());
  EXPECT_EQ(sink.take(),
            Lines({"10.0.0.1:7 failed: it has none", "refuse reader 92: not found", "fail"}));
  piece_sent(1);
  EXPECT_EQ(sink.take(), Lines({"end 1: aborted"}));
}

TEST_F(FetchesTest, WhoAsksForAnObjectThatIsNotReceivedIsRefused) {
  fetches->read(91, object(1), {0, 100});
  EXPECT_EQ(sink.take(), Lines({"refuse reader 91: not found"}));
}

// ---- no progress

TEST_F(FetchesTest, ConnectionWithoutProgressIsClosed) {
  receive(1, 200, {1, 2});
  EXPECT_EQ(fetches->next_tick_us(), now.steady_us + kSecond);
  pass(kSecond - 1);
  pulled(1, 0, 200);
  pass(kSecond - 1);
  EXPECT_TRUE(sink.is_empty());
  pass(1);
  EXPECT_EQ(sink.take(), Lines({"close 1: no progress for 1000 ms"}));
  // The end of the connection ends the call, and the next source is asked.
  pulled(1, 1, broken());
  EXPECT_EQ(sink.take(), Lines({"10.0.0.1:7 failed: it broke", "connect 1 to 10.0.0.2"}));
  // Nothing is watched while no call is out: connecting has a limit of its own.
  pass(5 * kSecond);
  EXPECT_TRUE(sink.is_empty());
  EXPECT_EQ(fetches->next_tick_us(), -1);
}

TEST_F(FetchesTest, WaitingForRoomIsNoLackOfProgress) {
  start({order(1, {1})});
  connected(1);
  described(1, 100);
  sink.take();
  pass(10 * kSecond);
  created(1, 4096);
  pass(kSecond - 1);
  EXPECT_EQ(sink.take(), Lines({"pull 1: 0+100 to 4096"}));
  pass(1);
  EXPECT_EQ(sink.take(), Lines({"close 1: no progress for 1000 ms"}));
}

TEST_F(FetchesTest, AnswersToAFetchThatIsOverAreIgnored) {
  receive(1, 100, {1});
  pulled(1, 0, 100);
  sink.take();
  start({order(1, {1})});
  EXPECT_EQ(sink.take(), Lines({"connect 2 to 10.0.0.1"}));
  pulled(1, 0, 100);
  connected(1);
  EXPECT_TRUE(sink.is_empty());
}

}  // namespace
}  // namespace rt::store
