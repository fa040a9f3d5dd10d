#include "worker/service/gets.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/unit/worker/service_parts.h"
#include "worker/core/death.h"
#include "worker/service/travelling_refs.h"

namespace rt::worker {
namespace {

class GetsTest : public testing::Test {
 protected:
  Ref unmade() {
    WorkerLock lock(parts_.shared.mutex);
    return Ref(parts_.objects.refs().create(ObjectId::random(parts_.rng)));
  }
  Ref made() {
    ValueParts value;
    value.kind = ValueKind::kRaw;
    return *parts_.objects.put(value);
  }
  Ref failed() {
    Ref ref = unmade();
    WorkerLock lock(parts_.shared.mutex);
    parts_.objects.count_error();
    parts_.objects.set_error(entry_of(ref), system_error(Code::kInternal, "it failed"));
    return ref;
  }
  Waited wait_all(const std::vector<Ref>& refs) { return gets_.wait_all(refs, steady_now_us(), 0); }
  // The refs that were ready, as a string of 0 and 1.
  std::string wait_some(const std::vector<Ref>& refs, size_t count) {
    std::vector<bool> ready;
    const Waited waited = gets_.wait_some(refs, count, steady_now_us(), 0, true, &ready);
    std::string out(waited == Waited::kDone ? "done " : "timeout ");
    for (bool is_ready : ready) out += is_ready ? '1' : '0';
    return out;
  }

  test::ServiceParts parts_{Options{},
                            {.turned = [] {},
                             .current_task = [] { return nullptr; },
                             .take_signal = {},
                             .set_blocked = {}},
                            {}};
  Gets gets_{{parts_.shared, parts_.pump, parts_.peers, parts_.objects}};
};

TEST_F(GetsTest, AGetEndsWithAllValuesOrTheFirstFailure) {
  const Ref value = made(), missing = unmade(), error = failed();
  EXPECT_EQ(wait_all({value, value}), Waited::kDone);
  EXPECT_EQ(wait_all({value, error}), Waited::kDone) << "an error is a value";
  EXPECT_EQ(wait_all({value, missing}), Waited::kTimeout);
  EXPECT_EQ(wait_all({missing, error}), Waited::kFailed);
  const std::vector<Ref> refs{value, missing, error}, good{value, missing};
  EXPECT_EQ(gets_.first_failed(refs, 0), 2U);
  EXPECT_EQ(gets_.first_failed(good, 0), 2U) << "none";
}

TEST_F(GetsTest, AWaitCountsNoMoreThanItWasAskedFor) {
  const Ref value = made(), missing = unmade();
  EXPECT_EQ(wait_some({missing, value, value}, 1), "done 010");
  EXPECT_EQ(wait_some({missing, value, value}, 2), "done 011");
  EXPECT_EQ(wait_some({missing, value, value}, 3), "timeout 011");
}

TEST_F(GetsTest, AReadyValueNeedsNoCallback) {
  bool called = false;
  const Ref missing = unmade();
  EXPECT_FALSE(gets_.on_ready(made(), [&] { called = true; }));
  EXPECT_TRUE(gets_.on_ready(missing, [&] { called = true; }));
  EXPECT_FALSE(called);
  WorkerLock lock(parts_.shared.mutex);
  parts_.objects.set_error(entry_of(missing), system_error(Code::kInternal, "it failed"));
  EXPECT_TRUE(called);
}

TEST_F(GetsTest, AReferenceComesBackOnlyInItsOwnCluster) {
  TravellingRefs refs{{parts_.shared, parts_.objects}};
  const std::string here = ClusterId::random(parts_.rng).binary();
  {
    WorkerLock lock(parts_.shared.mutex);
    parts_.shared.self.registered(here);
  }
  const Ref value = made();
  const std::string packed = refs.pack(value);
  auto back = refs.unpack(packed);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->id(), value.id());
  EXPECT_EQ(refs.unpack(packed.substr(1)).error().code, Code::kOwnerDied);
  EXPECT_EQ(refs.unpack("short").error().code, Code::kInvalid);
  EXPECT_EQ(refs.unpack(here + "and no reference").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace rt::worker
