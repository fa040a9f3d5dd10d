// When frames leave that wait for the registrations of borrows and for the owners of what they
// lend.
#include "worker/core/frame_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

struct NoOwners : RefSink {
  void add_borrower(const proto::WorkerAddress&, const std::vector<ObjectId>&,
                    const WorkerId&) override {}
  void remove_borrower(const proto::WorkerAddress&, const ObjectId&, uint32_t) override {}
  void free_object(ObjectEntry&) override {}
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId&) override {}
};

class FrameLinesTest : public ::testing::Test {
 protected:
  struct Receiver {
    std::string got;
    bool open = true;
  };
  struct Named : HeldFrame {
    char name = 0;
  };

  FrameLinesTest() {
    auto address = std::make_shared<proto::WorkerAddress>();
    address->set_worker_id(WorkerId::random(rng).binary());
    owner = address;
  }
  ~FrameLinesTest() override { table.close(); }

  // Borrows one more object, of which its owner is told.
  ObjectId borrow() {
    const ObjectId id = ObjectId::random(rng);
    kept.emplace_back(table.borrow(id, owner, false));
    table.register_kept();
    return id;
  }
  std::shared_ptr<Named> send(Receiver* to, char name, bool ends_hold, int unasked = 0) {
    HeldFrame waits;
    if (ends_hold) waits.after = table.last_registration();
    waits.unasked = unasked;
    auto frame = std::make_shared<Named>(waits, name);
    if (lines.passes(table, to, waits)) {
      to->got += name;
    } else {
      lines.hold(to, frame);
    }
    lines.check_invariants();
    return frame;
  }
  void release() {
    lines.release(
        table, [](Receiver* to) { return !to || to->open; },
        [this](Receiver* to, const Named& frame) { (to ? to->got : to_nobody) += frame.name; });
    lines.check_invariants();
  }

  Rng rng{5};
  NoOwners sink;
  RefTable table{sink, WorkerId::random(rng)};
  std::shared_ptr<const proto::WorkerAddress> owner;
  std::vector<Ref> kept;
  FrameLines<Receiver*, Named> lines;
  Receiver a, b;
  std::string to_nobody;
};

TEST_F(FrameLinesTest, WhatWaitsForNothingLeavesAtOnce) {
  send(&a, '1', true);
  EXPECT_EQ(a.got, "1");
  EXPECT_TRUE(lines.empty());
}

TEST_F(FrameLinesTest, AReplyWaitsForTheBorrowsThatWereRegisteredBefore) {
  const ObjectId first = borrow();
  send(&a, '1', true);
  const ObjectId second = borrow();
  release();
  EXPECT_EQ(a.got, "");
  table.confirm_borrows({first});
  release();
  EXPECT_EQ(a.got, "1");
  EXPECT_TRUE(lines.empty());
  table.confirm_borrows({second});
}

TEST_F(FrameLinesTest, FramesToOneReceiverKeepTheirOrderAndOthersDoNotWait) {
  const ObjectId borrowed = borrow();
  send(&a, '1', true);
  send(&a, '2', false);
  send(&b, '3', false);
  release();
  EXPECT_EQ(a.got, "");
  EXPECT_EQ(b.got, "3");
  table.confirm_borrows({borrowed});
  release();
  EXPECT_EQ(a.got, "12");
}

TEST_F(FrameLinesTest, WhatLendsWaitsForAllOwners) {
  auto frame = send(&a, '1', false, 2);
  --frame->unasked;
  release();
  EXPECT_EQ(a.got, "");
  --frame->unasked;
  release();
  EXPECT_EQ(a.got, "1");
}

TEST_F(FrameLinesTest, FramesToAReceiverThatIsGoneAreDropped) {
  const ObjectId borrowed = borrow();
  send(&a, '1', true);
  send(&b, '2', true);
  a.open = false;
  release();
  table.confirm_borrows({borrowed});
  release();
  EXPECT_EQ(a.got, "");
  EXPECT_EQ(b.got, "2");
  EXPECT_TRUE(lines.empty());
}

TEST_F(FrameLinesTest, TheAnswerToACreationHasALineToo) {
  const ObjectId borrowed = borrow();
  send(nullptr, '1', true);
  EXPECT_FALSE(lines.empty());
  table.confirm_borrows({borrowed});
  release();
  EXPECT_EQ(to_nobody, "1");
}

}  // namespace
}  // namespace rt::worker
