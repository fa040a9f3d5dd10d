#include "worker/service/objects.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/worker/service_parts.h"
#include "worker/core/death.h"

namespace rt::worker {
namespace {

class ObjectsTest : public testing::Test {
 protected:
  using Answer = std::function<void(proto::ExitInfo)>;

  Objects::Hooks hooks() {
    return {.ask_exit =
                [this](const proto::WorkerAddress& worker, Answer done) {
                  asked_.emplace_back(worker.worker_id(), std::move(done));
                },
            .borrows_confirmed = {},
            .actor_out_of_scope = [this](const ActorId& actor) { ended_actors_.push_back(actor); },
            .stream_dropped = {}};
  }
  static Pump::Hooks pump_hooks() {
    return {.turned = [] {},
            .current_task = [] { return nullptr; },
            .take_signal = {},
            .set_blocked = {}};
  }
  static Options options() {
    Options options;
    options.is_driver = true;
    return options;
  }
  static ValueParts raw(std::string_view text) {
    ValueParts parts;
    parts.kind = ValueKind::kRaw;
    parts.inband = as_bytes(text);
    return parts;
  }
  // An object of another process, which cannot be reached.
  Ref borrow() {
    owner_->set_worker_id(WorkerId::random(parts_.rng).binary());
    owner_->set_ip("10.0.0.2");
    owner_->set_port(1);
    return Ref(objects_.refs().borrow(ObjectId::random(parts_.rng), owner_, true));
  }
  proto::ObjectStatusRequest question(const ObjectId& id) {
    proto::ObjectStatusRequest request;
    request.set_object_id(id.binary());
    request.set_want_value(true);
    return request;
  }

  test::ServiceParts parts_{options(), pump_hooks(), hooks()};
  Objects& objects_ = parts_.objects;
  // Calls of the hooks. An answer that is not given holds a reference, so these end first.
  std::vector<std::pair<std::string, Answer>> asked_;
  std::vector<ActorId> ended_actors_;
  std::shared_ptr<proto::WorkerAddress> owner_ = std::make_shared<proto::WorkerAddress>();
};

TEST_F(ObjectsTest, ASmallValueStaysInThisProcess) {
  auto ref = objects_.put(raw("seven"));
  ASSERT_TRUE(ref);
  auto value = objects_.value_of(*ref, 0);
  ASSERT_TRUE(value);
  EXPECT_EQ(as_view(value->inband), "seven");
  EXPECT_FALSE(value->in_shared_memory);
  parts_.shared.stopping = true;
  EXPECT_EQ(objects_.put(raw("eight")).error().code, Code::kUnavailable);
}

TEST_F(ObjectsTest, ALargeValueNeedsAStore) {
  const std::string large(parts_.shared.settings().max_inline_bytes + 1, 'x');
  EXPECT_EQ(objects_.put(raw(large)).error().code, Code::kUnavailable);
  WorkerLock lock(parts_.shared.mutex);
  EXPECT_EQ(objects_.refs().owned(), 0U);
}

TEST_F(ObjectsTest, ABorrowerIsAnsweredWhenTheValueIsMade) {
  WorkerLock lock(parts_.shared.mutex);
  std::vector<proto::ObjectStatus> answers;
  auto answer = [&](const proto::ObjectStatus& status) { answers.push_back(status); };
  objects_.serve(question(ObjectId::random(parts_.rng)), answer);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].state(), proto::ObjectStatus::UNKNOWN);

  Ref ref(objects_.refs().create(ObjectId::random(parts_.rng)));
  objects_.serve(question(ref.id()), answer);
  EXPECT_EQ(answers.size(), 1U);
  objects_.set_error(entry_of(ref), system_error(Code::kInternal, "it failed"));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].state(), proto::ObjectStatus::READY_INLINE);
  EXPECT_EQ(objects_.errors_stored(), 1U);
  objects_.serve(question(ref.id()), answer);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[2].value(), answers[1].value());
}

TEST_F(ObjectsTest, TheErrorOfABorrowedObjectTellsHowItsOwnerEnded) {
  Ref ref;
  {
    WorkerLock lock(parts_.shared.mutex);
    ref = borrow();
    objects_.resolve(entry_of(ref));
    objects_.resolve(entry_of(ref));
    ASSERT_EQ(parts_.network.attempts.size(), 1U);
    parts_.network.refuse_all();
    ASSERT_EQ(asked_.size(), 1U);
    EXPECT_EQ(asked_[0].first, owner_->worker_id());
    EXPECT_FALSE(ref.entry()->ready);
    proto::ExitInfo exit;
    exit.set_kind(proto::ExitInfo::KILLED_BY_USER);
    exit.set_ip("10.0.0.2");
    asked_[0].second(exit);
  }
  auto value = objects_.value_of(ref, 0);
  ASSERT_TRUE(value);
  ASSERT_EQ(value->kind, ValueKind::kError);
  auto error = decode_error(value->inband);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), static_cast<int>(Code::kOwnerDied));
  EXPECT_EQ(error->exit().kind(), proto::ExitInfo::KILLED_BY_USER);
  EXPECT_EQ(error->object_id(), ref.id().binary());
}

TEST_F(ObjectsTest, TheLastHandleOfAnActorEndsIt) {
  WorkerLock lock(parts_.shared.mutex);
  const ActorId actor = ActorId::random(parts_.rng);
  ObjectEntry* handle = objects_.refs().create(handle_object_of(actor));
  handle->kind = ObjectEntry::Kind::kActorHandle;
  Ref ref(handle);
  objects_.refs().drain_releases();
  EXPECT_TRUE(ended_actors_.empty());
  ref.reset();
  objects_.refs().drain_releases();
  EXPECT_EQ(ended_actors_, std::vector<ActorId>{actor});
}

TEST_F(ObjectsTest, AnErrorThatNobodyHasReadIsReportedWhenItIsDropped) {
  WorkerLock lock(parts_.shared.mutex);
  for (const bool seen : {true, false}) {
    Ref ref(objects_.refs().create(ObjectId::random(parts_.rng)));
    objects_.set_error(entry_of(ref), system_error(Code::kInternal, "it failed"));
    entry_of(ref).unseen_error = !seen;
    ref.reset();
    objects_.refs().drain_releases();
    EXPECT_EQ(parts_.notices.empty(), seen);
  }
}

}  // namespace
}  // namespace rt::worker
