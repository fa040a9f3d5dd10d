// TimerHeap: timers in the order of their deadlines.
#include "common/net/timer_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/rng.h"

namespace rt::net {
namespace {

TEST(TimerHeap, FiresInOrderOfDeadlineThenAddition) {
  TimerHeap timers;
  std::string order;
  timers.add(20, [&] { order += 'c'; });
  timers.add(10, [&] { order += 'a'; });
  timers.add(10, [&] { order += 'b'; });
  timers.add(30, [&] { order += 'd'; });
  EXPECT_EQ(timers.next_deadline_us(), 10);
  timers.fire_due(20);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(timers.next_deadline_us(), 30);
}

TEST(TimerHeap, CancelledTimersNeitherFireNorHoldTheDeadline) {
  TimerHeap timers;
  int fired = 0;
  auto first = timers.add(10, [&] { ++fired; });
  auto second = timers.add(20, [&] { ++fired; });
  timers.cancel(first);
  EXPECT_EQ(timers.next_deadline_us(), 20);
  timers.fire_due(100);
  EXPECT_EQ(fired, 1);
  timers.cancel(second);  // This timer has run already.
  timers.cancel(0);
  timers.cancel(~0ull);
  // The id of a timer that has run does not cancel the timer that reuses its slot.
  timers.add(10, [&] { ++fired; });
  timers.cancel(first);
  timers.cancel(second);
  timers.fire_due(100);
  EXPECT_EQ(fired, 2);
}

TEST(TimerHeap, ATaskMayAddAndCancelWhatIsDue) {
  TimerHeap timers;
  int fired = 0;
  TimerHeap::Id victim = 0;
  timers.add(1, [&] {
    timers.cancel(victim);
    timers.add(1, [&] { fired += 10; });  // This timer runs in the next fire_due().
  });
  victim = timers.add(2, [&] { ++fired; });
  timers.fire_due(5);
  EXPECT_EQ(fired, 0);
  timers.fire_due(5);
  EXPECT_EQ(fired, 10);
  EXPECT_EQ(timers.next_deadline_us(), TimerHeap::kNever);
}

TEST(TimerHeap, AgreesWithASortedList) {
  Rng rng(3);
  TimerHeap timers;
  std::map<TimerHeap::Id, int64_t> expected;
  std::vector<TimerHeap::Id> fired;
  int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.chance(0.6)) {
      int64_t deadline = now + static_cast<int64_t>(rng.below(1000));
      auto id = std::make_shared<TimerHeap::Id>();
      *id = timers.add(deadline, [&fired, id] { fired.push_back(*id); });
      expected[*id] = deadline;
    } else if (!expected.empty() && rng.chance(0.9)) {
      auto it = std::next(expected.begin(),
                          static_cast<long>(rng.below(std::min<size_t>(expected.size(), 10))));
      timers.cancel(it->first);
      expected.erase(it);
    } else {
      now += static_cast<int64_t>(rng.below(200));
      fired.clear();
      timers.fire_due(now);
      for (auto id : fired) {
        ASSERT_TRUE(expected.contains(id));
        ASSERT_LE(expected[id], now);
        expected.erase(id);
      }
      for (auto& [id, deadline] : expected) ASSERT_GT(deadline, now);
    }
    int64_t next = TimerHeap::kNever;
    if (step % 100 == 0) {
      for (auto& [id, deadline] : expected) next = std::min(next, deadline);
      ASSERT_EQ(timers.next_deadline_us(), next);
    }
  }
}

}  // namespace
}  // namespace rt::net
