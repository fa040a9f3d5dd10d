#include "common/base/proc.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rt {
namespace {

TEST(Proc, TellsOfThisProcessWhateverItsNameIs) {
  // The name is in parentheses before the other fields.
  ASSERT_EQ(::prctl(PR_SET_NAME, "a) Z 1 (b"), 0);
  const auto stat = proc_stat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->threads, 1);
  EXPECT_GT(stat->start_ticks, 0u);
}

TEST(Proc, AProcessThatWasNotReapedIsAZombieAndThenGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const auto stat = proc_stat(child);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'Z');
  EXPECT_GE(stat->start_ticks, proc_stat(::getpid())->start_ticks);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(proc_stat(child));
  EXPECT_FALSE(proc_stat(0));
}

TEST(Proc, ReadsNoMoreThanAskedFor) {
  EXPECT_EQ(read_proc("/proc/self/stat", 3).size(), 3u);
  EXPECT_EQ(read_proc("/proc/self/no-such-file"), "");
}

}  // namespace
}  // namespace rt
