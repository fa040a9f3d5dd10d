// Threads that leave signals to the program (common/base/thread.h).
#include "common/base/thread.h"

#include <gtest/gtest.h>

namespace rt {
namespace {

bool blocks(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST(Threads, BlockAllSignalsFromTheirBeginning) {
  bool interrupt = false, end = false;
  auto thread = start_thread([&] {
    interrupt = blocks(SIGINT);
    end = blocks(SIGTERM);
  });
  ASSERT_TRUE(thread);
  thread->join();
  EXPECT_TRUE(interrupt);
  EXPECT_TRUE(end);
}

TEST(Threads, TheMaskOfWhoStartsThemIsAsBefore) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &one, &before);
  start_thread([] {})->join();
  EXPECT_FALSE(blocks(SIGINT));
  EXPECT_TRUE(blocks(SIGUSR2)) << "what was blocked stays so";
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace rt
