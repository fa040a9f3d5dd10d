#include "worker/service/content_cache.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/unit/worker/manual_loop.h"

namespace rt::worker {
namespace {

class NoSink final : public RefSink {
 public:
  void add_borrower(const proto::WorkerAddress&, const std::vector<ObjectId>&,
                    const WorkerId&) override {}
  void remove_borrower(const proto::WorkerAddress&, const ObjectId&, uint32_t) override {}
  void free_object(ObjectEntry& entry) override { freed.push_back(entry.id); }
  void actor_out_of_scope(const ActorId&) override {}
  void stream_dropped(const TaskId&) override {}

  std::vector<ObjectId> freed;
};

class ContentCacheTest : public testing::Test {
 protected:
  Ref make() {
    ObjectEntry* entry = refs_->create(ObjectId::random(rng_));
    entry->state = ObjectState::kInMemory;
    entry->ready = true;
    return Ref(entry);
  }

  Rng rng_{1};
  NoSink sink_;
  test::ManualLoop loop_;
  std::unique_ptr<RefTable> refs_ = std::make_unique<RefTable>(sink_, WorkerId::random(rng_));
  ContentCache cache_{loop_, refs_};
  const ContentHash one_{1, 1}, other_{1, 2};
};

TEST_F(ContentCacheTest, EqualContentIsTheSameObject) {
  const Ref ref = make();
  EXPECT_FALSE(cache_.find(one_));
  cache_.add(one_, ref);
  EXPECT_EQ(cache_.find(one_), ref);
  EXPECT_FALSE(cache_.find(other_));
}

TEST_F(ContentCacheTest, TheArgumentIsKeptForAMomentAfterItsLastUse) {
  cache_.add(one_, make());
  loop_.advance(400'000);
  EXPECT_TRUE(cache_.find(one_));
  loop_.advance(400'000);
  refs_->drain_releases();
  EXPECT_TRUE(sink_.freed.empty());
  loop_.advance(200'000);
  refs_->drain_releases();
  EXPECT_EQ(sink_.freed.size(), 1U);
  EXPECT_FALSE(loop_.has_timers());
}

TEST_F(ContentCacheTest, OnlyTheLastArgumentIsKept) {
  cache_.add(one_, make());
  cache_.add(other_, make());
  refs_->drain_releases();
  EXPECT_EQ(sink_.freed.size(), 1U);
  EXPECT_FALSE(cache_.find(one_));
  EXPECT_TRUE(cache_.find(other_));
  cache_.let_go();
  refs_->drain_releases();
  EXPECT_EQ(sink_.freed.size(), 2U);
}

TEST_F(ContentCacheTest, AFreedObjectIsForgotten) {
  const Ref ref = make();
  cache_.add(one_, ref);
  cache_.forget(ref.id());
  EXPECT_FALSE(cache_.find(one_));
}

}  // namespace
}  // namespace rt::worker
