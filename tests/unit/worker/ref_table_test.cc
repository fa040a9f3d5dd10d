// Reference counting (owners, borrowers, contained references, actor handles) against a recording
// RefSink.
#include "worker/core/ref_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

struct RefRecorder : RefSink {
  std::vector<ObjectId> freed, registered, returned;
  std::vector<uint32_t> returned_lendings;
  std::vector<size_t> registered_at_once;
  std::vector<ActorId> out_of_scope;
  std::vector<TaskId> dropped_streams;
  void add_borrower(const proto::WorkerAddress&, const std::vector<ObjectId>& ids,
                    const WorkerId&) override {
    registered.insert(registered.end(), ids.begin(), ids.end());
    registered_at_once.push_back(ids.size());
  }
  void remove_borrower(const proto::WorkerAddress&, const ObjectId& id, uint32_t lent) override {
    returned.push_back(id);
    returned_lendings.push_back(lent);
  }
  void free_object(ObjectEntry& entry) override { freed.push_back(entry.id); }
  void actor_out_of_scope(const ActorId& actor) override { out_of_scope.push_back(actor); }
  void stream_dropped(const TaskId& task) override { dropped_streams.push_back(task); }
};

class RefTableTest : public ::testing::Test {
 protected:
  RefTableTest() {
    for (int i = 0; i < 4; ++i) ids.push_back(ObjectId::random(rng));
    me = WorkerId::random(rng);
    them = WorkerId::random(rng);
    table = std::make_unique<RefTable>(sink, me);
    auto address = std::make_shared<proto::WorkerAddress>();
    address->set_worker_id(them.binary());
    owner = address;
  }
  ~RefTableTest() override { table->check_invariants(); }
  bool all_confirmed() const { return table->confirmed(table->last_registration()); }
  Rng rng{42};
  RefRecorder sink;
  WorkerId me, them;
  std::vector<ObjectId> ids;
  std::unique_ptr<RefTable> table;
  std::shared_ptr<const proto::WorkerAddress> owner;
};

TEST_F(RefTableTest, TheLastReferenceFrees) {
  Ref a(table->create(ids[0]));
  Ref b = a;
  a.reset();
  table->drain_releases();
  EXPECT_TRUE(sink.freed.empty());
  b.reset();
  table->drain_releases();
  EXPECT_EQ(sink.freed, std::vector<ObjectId>{ids[0]});
  EXPECT_EQ(table->size(), 0u);
}

TEST_F(RefTableTest, AReferenceTakenWhileTheLastDropIsQueuedSurvives) {
  Ref a(table->create(ids[0]));
  a.reset();
  Ref again(table->find(ids[0]));
  table->drain_releases();
  EXPECT_TRUE(sink.freed.empty());
  again.reset();
  table->drain_releases();
  EXPECT_EQ(sink.freed.size(), 1u);
}

TEST_F(RefTableTest, WhatABorrowerReturnsWhileTheLastDropIsOnItsWayIsFreedOnce) {
  Ref a(table->create(ids[0]));
  EXPECT_TRUE(table->add_borrower(ids[0], them));
  a.reset();  // The drop is only queued: the thread that dropped it may still use the entry.
  table->remove_borrower(ids[0], them, 1);
  EXPECT_TRUE(sink.freed.empty());
  EXPECT_EQ(table->size(), 1u);
  table->drain_releases();
  EXPECT_EQ(sink.freed.size(), 1u);
}

TEST_F(RefTableTest, EntriesAreSharedByThreadsThatDropThem) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  constexpr int kRounds = 20'000;
  std::vector<Ref> handed;
  std::mutex handing;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        Ref mine;
        {
          std::lock_guard lock(handing);
          if (!handed.empty()) mine = handed.back(), handed.pop_back();
        }
        mine.reset();
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) {
    ObjectId id = ObjectId::random(rng);
    Ref made(table->create(id));
    table->add_borrower(id, them);
    {
      std::lock_guard lock(handing);
      handed.push_back(made);
      handed.push_back(std::move(made));
    }
    table->remove_borrower(id, them, 1);  // Races with the threads that drop their references.
    table->drain_releases();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  handed.clear();
  table->drain_releases();
  EXPECT_EQ(sink.freed.size(), static_cast<size_t>(kRounds));
  EXPECT_EQ(table->size(), 0u);
}

TEST_F(RefTableTest, BorrowersKeepAnObjectUntilTheyReturnOrDie) {
  Ref a(table->create(ids[0]));
  EXPECT_TRUE(table->add_borrower(ids[0], them));
  EXPECT_TRUE(table->add_borrower(ids[0], them));
  a.reset();
  table->drain_releases();
  EXPECT_TRUE(sink.freed.empty());
  table->borrower_gone(them);
  EXPECT_EQ(sink.freed.size(), 1u);
  EXPECT_FALSE(table->add_borrower(ids[0], them));
}

TEST_F(RefTableTest, WhatIsLentToABorrowerThatIsKnownToBeDeadKeepsNothing) {
  Ref a(table->create(ids[0]));
  table->borrower_died(them);
  EXPECT_TRUE(table->add_borrower(ids[0], them));  // By a third process, which does not know yet.
  a.reset();
  table->drain_releases();
  EXPECT_EQ(sink.freed.size(), 1u);
}

TEST_F(RefTableTest, ABorrowNobodyKeptIsNeverRegistered) {
  { Ref r(table->borrow(ids[1], owner, false)); }
  table->register_kept();
  EXPECT_TRUE(all_confirmed());
  EXPECT_TRUE(sink.registered.empty());
  EXPECT_TRUE(sink.returned.empty());
  EXPECT_EQ(table->size(), 0u);
}

TEST_F(RefTableTest, AKeptBorrowIsRegisteredOnceAndReturnedAtTheEnd) {
  Ref kept(table->borrow(ids[1], owner, false));
  table->register_kept();
  table->register_kept();
  EXPECT_FALSE(all_confirmed());
  EXPECT_EQ(sink.registered, std::vector<ObjectId>{ids[1]});
  kept.reset();
  table->drain_releases();
  EXPECT_TRUE(sink.returned.empty());  // Not before the owner has confirmed the borrow.
  table->confirm_borrows({ids[1]});
  EXPECT_TRUE(all_confirmed());
  EXPECT_EQ(sink.returned, std::vector<ObjectId>{ids[1]});
}

TEST_F(RefTableTest, AnOwnerHearsOfBorrowsThatCameTogetherInOneMessage) {
  auto other = std::make_shared<proto::WorkerAddress>();
  other->set_worker_id(WorkerId::random(rng).binary());
  std::vector<Ref> kept;
  for (int i = 0; i < 500; ++i)
    kept.emplace_back(table->borrow(ObjectId::random(rng), i < 300 ? owner : other, false));
  table->register_kept();
  EXPECT_EQ(sink.registered_at_once, (std::vector<size_t>{300, 200}));
  table->confirm_borrows(sink.registered);
  EXPECT_TRUE(all_confirmed());
}

TEST_F(RefTableTest, ABorrowThatIsNamedTwiceIsRegisteredOnce) {
  Ref kept(table->borrow(ids[1], owner, false));
  auto* entry = &entry_of(kept);
  table->register_now({entry, entry});
  EXPECT_EQ(sink.registered, std::vector<ObjectId>{ids[1]});
  table->confirm_borrows({ids[1], ids[1]});
  EXPECT_TRUE(all_confirmed());
}

TEST_F(RefTableTest, OfManyBorrowsThoseThatAreDroppedAreNotRegistered) {
  std::vector<Ref> brought;
  for (int i = 0; i < 1000; ++i)
    brought.emplace_back(table->borrow(ObjectId::random(rng), owner, false));
  std::vector<ObjectId> left;
  for (size_t i = 0; i < brought.size(); ++i) {
    if (rng.next() % 4 == 0) {
      left.push_back(brought[i].id());
      continue;
    }
    brought[i].reset();
    if (i % 10 == 0) table->drain_releases();
    table->check_invariants();
  }
  table->register_kept();
  EXPECT_EQ(table->size(), left.size());
  std::sort(left.begin(), left.end());
  std::sort(sink.registered.begin(), sink.registered.end());
  EXPECT_EQ(sink.registered, left);
}

TEST_F(RefTableTest, ABorrowTheSenderRegisteredIsReturned) {
  { Ref r(table->borrow(ids[1], owner, true)); }
  table->drain_releases();
  EXPECT_TRUE(sink.registered.empty());
  EXPECT_EQ(sink.returned, std::vector<ObjectId>{ids[1]});
}

TEST_F(RefTableTest, AnObjectThatIsLentAgainWhileItIsReturnedStays) {
  Ref a(table->create(ids[0]));
  table->add_borrower(ids[0], them);
  table->add_borrower(ids[0], them);  // A result lends it again, and crosses what comes back.
  a.reset();
  table->drain_releases();
  table->remove_borrower(ids[0], them, 1);
  EXPECT_TRUE(sink.freed.empty());
  table->remove_borrower(ids[0], them, 1);
  EXPECT_EQ(sink.freed.size(), 1u);
}

TEST_F(RefTableTest, AllThatWasLentIsReturned) {
  Ref kept(table->borrow(ids[1], owner, false));
  table->register_kept();
  table->borrow(ids[1], owner, true);
  table->confirm_borrows({ids[1]});
  table->borrow(ids[1], owner, true);
  kept.reset();
  table->drain_releases();
  EXPECT_EQ(sink.returned_lendings, std::vector<uint32_t>{3});
  { Ref again(table->borrow(ids[1], owner, true)); }
  table->drain_releases();
  EXPECT_EQ(sink.returned_lendings, (std::vector<uint32_t>{3, 1}));
}

TEST_F(RefTableTest, ABorrowIsReturnedAfterTheRegistrationsThatWereMadeBefore) {
  Ref outer(table->borrow(ids[0], owner, true));
  Ref inner(table->borrow(ids[1], owner, false));
  table->register_now({&entry_of(inner)});
  outer.reset();  // Its owner may hold the inner object only as a part of it.
  table->drain_releases();
  EXPECT_TRUE(sink.returned.empty());
  // Later ones do not delay it.
  const uint64_t before = table->last_registration();
  Ref later(table->borrow(ids[2], owner, false));
  table->register_kept();
  table->confirm_borrows({ids[2]});
  EXPECT_FALSE(table->confirmed(before));
  table->confirm_borrows({ids[1]});
  EXPECT_EQ(sink.returned, std::vector<ObjectId>{ids[0]});
  EXPECT_TRUE(all_confirmed());
  Ref last(table->borrow(ids[3], owner, false));
  table->register_kept();
  EXPECT_TRUE(table->confirmed(before));
  EXPECT_FALSE(all_confirmed());
  inner.reset();
  table->drain_releases();
  EXPECT_EQ(sink.returned.size(), 1u);
  table->confirm_borrows({ids[3]});
  EXPECT_EQ(sink.returned, (std::vector<ObjectId>{ids[0], ids[1]}));
}

TEST_F(RefTableTest, ContainedReferencesGoWithTheirContainer) {
  ObjectEntry* outer = table->create(ids[0]);
  Ref hold(outer);
  outer->mutable_details().contained.push_back(Ref(table->create(ids[2])));
  hold.reset();
  table->drain_releases();
  EXPECT_EQ(sink.freed, (std::vector<ObjectId>{ids[0], ids[2]}));
}

TEST_F(RefTableTest, ActorHandlesEndTheirActor) {
  ActorId actor = make_actor_id(job_id_from_int(1), 5, 6);
  ObjectEntry* handle = table->create(handle_object_of(actor));
  handle->kind = ObjectEntry::Kind::kActorHandle;
  { Ref r(handle); }
  table->drain_releases();
  EXPECT_EQ(sink.out_of_scope, std::vector<ActorId>{actor});
  EXPECT_TRUE(sink.freed.empty());
}

TEST_F(RefTableTest, AfterCloseDropsAreHarmless) {
  Ref a(table->create(ids[0]));
  table->close();
  a.reset();
  table->drain_releases();
  EXPECT_TRUE(sink.freed.empty());
}

TEST_F(RefTableTest, AnIdleProcessIsWokenToLetGoOfWhatOthersCareFor) {
  int wakes = 0;
  table->set_wake([&] { ++wakes; });
  Ref inner(table->create(ids[0]));
  inner.entry()->ready = true;
  {
    ObjectEntry* plain = table->create(ids[1]);
    plain->state = ObjectState::kInMemory;
    Ref a(plain);
  }
  EXPECT_EQ(wakes, 0);
  {
    ObjectEntry* outer = table->create(ids[2]);
    outer->state = ObjectState::kInMemory;
    outer->mutable_details().contained = {inner};
    Ref a(outer);
  }
  EXPECT_EQ(wakes, 1);
  { Ref a(table->borrow(ids[3], owner, true)); }
  EXPECT_EQ(wakes, 2);
  entry_of(inner).state = ObjectState::kInStore;
  inner.reset();
  EXPECT_EQ(wakes, 2);  // `outer` holds it until the queued drops are handled.
  table->drain_releases();
  EXPECT_EQ(wakes, 3);
  EXPECT_EQ(table->size(), 0u);
  ObjectEntry* handle = table->create(handle_object_of(make_actor_id(job_id_from_int(1), 5, 6)));
  handle->kind = ObjectEntry::Kind::kActorHandle;
  { Ref a(handle); }
  EXPECT_EQ(wakes, 4);
}

TEST_F(RefTableTest, AReferenceMayOutliveItsWorkerAndThenNothingIsLeft) {
  std::weak_ptr<const proto::WorkerAddress> part_of_the_entry = owner;
  Ref late(table->borrow(ids[0], std::move(owner), true));
  table->close();
  table->replace_values(copy_blob(as_bytes("ended")));
  EXPECT_TRUE(late.entry()->ready);
  EXPECT_EQ(as_view(entry_of(late).blob.bytes()), "ended");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(table->is_unreferenced());
  EXPECT_EQ(late.id(), ids[0]);
  late.reset();
  EXPECT_TRUE(table->is_unreferenced());
  EXPECT_FALSE(part_of_the_entry.expired());
  table = std::make_unique<RefTable>(sink, me);
  EXPECT_TRUE(part_of_the_entry.expired());
  EXPECT_TRUE(sink.freed.empty());
}

TEST_F(RefTableTest, ATableEndsWithTheEntriesThatOnlyOthersNeed) {
  std::weak_ptr<const uint8_t[]> value;
  std::weak_ptr<const proto::WorkerAddress> owner_of_inner = owner;
  {
    ObjectEntry* outer = table->create(ids[0]);
    Ref held(outer);
    outer->blob = copy_blob(as_bytes("kept for a borrower"));
    value = outer->blob.data;
    outer->state = ObjectState::kInMemory;
    outer->ready = true;
    outer->mutable_details().contained = {Ref(table->borrow(ids[1], std::move(owner), true))};
    ASSERT_TRUE(table->add_borrower(ids[0], them));
  }
  table->drain_releases();
  EXPECT_EQ(table->size(), 2u);
  table = std::make_unique<RefTable>(sink, me);
  EXPECT_TRUE(value.expired());
  EXPECT_TRUE(owner_of_inner.expired());
  EXPECT_TRUE(sink.freed.empty());
  EXPECT_TRUE(sink.returned.empty());
}

TEST_F(RefTableTest, OurOwnFreedObjectIsNotBorrowed) {
  auto address = std::make_shared<proto::WorkerAddress>();
  address->set_worker_id(me.binary());
  EXPECT_EQ(table->borrow(ids[3], address, false), nullptr);
}

}  // namespace
}  // namespace rt::worker
