// Counters in memory that processes share and that outlive the process that counts.
#include "common/base/shared_counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace rt {
namespace {

std::unique_ptr<SharedCounters> counters() {
  auto made = SharedCounters::create();
  EXPECT_TRUE(made);
  return std::move(*made);
}

TEST(SharedCounters, SaysWhatAKilledProcessHadCounted) {
  auto all = counters();
  const int number = all->take();
  const pid_t child = ::fork();
  if (child == 0) {
    auto counter = SharedCounter::open(all->place(), number);
    for (int i = 0; counter && i < 1234; ++i) counter->add_one();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(all->give_back(number), 1234);
}

TEST(SharedCounters, EachHasItsOwn) {
  auto all = counters();
  const int first = all->take(), second = all->take();
  EXPECT_NE(first, second);
  auto counter = SharedCounter::open(all->place(), first);
  ASSERT_TRUE(counter);
  counter->add_one();
  EXPECT_EQ(all->give_back(second), 0);
  EXPECT_EQ(all->give_back(first), 1);
  EXPECT_EQ(all->take(), first);
  EXPECT_EQ(all->give_back(first), 0) << "the next one begins anew";
}

TEST(SharedCounters, AreLimitedAndReusable) {
  auto all = counters();
  for (int i = 0; i < SharedCounters::kCounters; ++i) ASSERT_EQ(all->take(), i);
  EXPECT_EQ(all->take(), -1);
  all->give_back(77);
  EXPECT_EQ(all->take(), 77);
}

TEST(SharedCounters, AreOpenedOnlyWhereTheyAre) {
  auto all = counters();
  for (int64_t number : {int64_t{-1}, int64_t{SharedCounters::kCounters}})
    EXPECT_EQ(SharedCounter::open(all->place(), number).error().code, Code::kInvalid);
  EXPECT_EQ(SharedCounter::open("/dev/null", 0).error().code, Code::kInvalid);
  EXPECT_FALSE(SharedCounter::open("/nowhere", 0));
  Fd fd(::open(all->place().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(::ftruncate(fd.get(), 0), 0) << "nobody takes the memory from under the others";
}

TEST(SharedCounter, CountsForItselfWithoutAPlace) {
  SharedCounter counter;
  counter.add_one();
}

}  // namespace
}  // namespace rt
