// PollLoop under several threads, as drivers use it: one mutex guards it, and the thread that
// waits also dispatches.
#include "common/net/poll_loop.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/base/clock.h"

namespace rt::net {
namespace {

// Counts the bytes that arrive.
class Counter : public StreamHandler {
 public:
  MutableBytes read_buffer() override { return buffer_; }
  void on_read(size_t n) override { total += n; }
  void on_closed(const Error&) override { closed = true; }
  size_t total = 0;
  bool closed = false;

 private:
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(4096);
};

struct Owner {
  std::mutex mutex;
  PollLoop loop;

  // Waits and dispatches until `done`, which is evaluated under the mutex, returns true. Returns
  // false when `timeout_us` passed first.
  template <class Done>
  bool pump(Done done, int64_t timeout_us = 60'000'000) {
    int64_t deadline = steady_now_us() + timeout_us;
    std::unique_lock lock(mutex);
    while (!done()) {
      if (steady_now_us() > deadline) return false;
      PollLoop::Ready ready;
      loop.flush_all();
      lock.unlock();
      loop.wait(ready, deadline - steady_now_us());
      lock.lock();
      loop.dispatch(ready);
    }
    return true;
  }
};

TEST(PollLoop, SeveralThreadsPumpWhileOthersWrite) {
  Owner owner;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Counter left, right;
  auto a = owner.loop.adopt(pair[0]);
  auto b = owner.loop.adopt(pair[1]);
  a->start(&left);
  b->start(&right);
  constexpr size_t kEach = 2000, kThreads = 3, kBytes = 100;
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      std::string text(kBytes, 'x');
      for (size_t i = 0; i < kEach; ++i) {
        std::lock_guard lock(owner.mutex);
        a->write(as_bytes(text));
        a->flush();
      }
      if (!owner.pump([&] { return right.total == kThreads * kEach * kBytes; })) ++failed;
      owner.loop.wake();  // Another thread may still sleep although all bytes have arrived.
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  a.reset();
  b.reset();
}

TEST(PollLoop, WakeEndsTheCurrentOrTheNextWait) {
  PollLoop loop;
  PollLoop::Ready ready;
  loop.wake();
  loop.wake();
  EXPECT_TRUE(loop.wait(ready, -1));
  EXPECT_EQ(ready.count, 0);
  int64_t start = steady_now_us();
  EXPECT_TRUE(loop.wait(ready, 2000));  // The two wakes ended only one wait.
  EXPECT_GE(steady_now_us() - start, 2000);
  for (int i = 0; i < 200; ++i) {
    std::thread waker([&] { loop.wake(); });
    EXPECT_TRUE(loop.wait(ready, -1));
    waker.join();
  }
}

// All waits of one thread share an alarm: a deadline later than the one that is set costs no
// system call, and no deadline is missed.
TEST(PollLoop, OneWaiterKeepsItsLimitsAndTimers) {
  PollLoop loop(PollLoop::Waiters::kOne);
  PollLoop::Ready ready;
  // The last turn comes after the time, so that it fires whatever is due by then.
  auto wait = [&](int64_t timeout_us) {
    const int64_t end = steady_now_us() + timeout_us;
    int turns = 0;
    for (bool over = false; !over; ++turns) {
      EXPECT_TRUE(loop.wait(ready, std::max<int64_t>(1, end - steady_now_us())));
      EXPECT_EQ(ready.count, 0);
      over = steady_now_us() >= end;
      loop.dispatch(ready);
    }
    EXPECT_LT(steady_now_us() - end, 60'000'000);
    return turns;
  };
  wait(1000);
  for (int i = 0; i < 1000; ++i) {  // wake() ends each of these waits before its deadline.
    loop.wake();
    loop.wait(ready, 20'000 + i % 7);
  }
  EXPECT_LE(wait(60'000), 3) << "the alarm of one of them may ring, not of each";
  int fired = 0, later = 0;
  loop.run_after(120'000'000, [&] { fired += 100; });
  loop.run_after(30'000, [&] { ++later; });
  loop.run_after(2'000, [&] { ++fired; });
  const auto cancelled = loop.run_after(1'000, [&] { fired += 100; });
  loop.cancel(cancelled);
  wait(10'000);
  EXPECT_EQ(fired, 1);
  wait(60'000);
  EXPECT_EQ(later, 1);
  EXPECT_EQ(fired, 1) << "a timer fired that was not due or was cancelled";
  const int64_t polled = steady_now_us();
  EXPECT_TRUE(loop.wait(ready, 0));
  EXPECT_LT(steady_now_us() - polled, 60'000'000);
}

// Everything that arrives until the peer closes.
std::string read_all(int fd) {
  std::string all, part(65536, '\0');
  for (ssize_t n; (n = ::read(fd, part.data(), part.size())) > 0;)
    all.append(part, 0, static_cast<size_t>(n));
  return all;
}

// A process that faults sends everything that is still queued, copied and referenced bytes alike,
// even if it is more than the socket's buffer holds. If the process lives on, these bytes are not
// sent again.
TEST(PollLoop, BytesSentByASignalHandlerAreNotSentAgain) {
  constexpr size_t kBlock = 8 << 20;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  std::string got;
  std::thread reader([&] {
    got = read_all(pair[1]);
    ::close(pair[1]);
  });
  {
    Owner owner;
    Counter handler;
    auto stream = owner.loop.adopt(pair[0]);
    stream->start(&handler);
    stream->out() += "first ";
    stream->write_ref(as_bytes("block "), nullptr);
    stream->out() += "second ";
    auto large = std::make_shared<std::string>(kBlock, 'x');
    stream->write_ref(as_bytes(*large), large);
    stream->out() += " third";
    owner.loop.send_last(10'000'000);
    EXPECT_EQ(stream->queued_bytes(), 0u);
    stream->out() += " fourth ";
    stream->write_ref(as_bytes("last"), nullptr);
    owner.loop.flush_all();
    EXPECT_EQ(stream->queued_bytes(), 0u);
  }
  reader.join();
  EXPECT_EQ(got, "first block second " + std::string(kBlock, 'x') + " third fourth last");
}

TEST(PollLoop, SendLastGivesUpAtItsDeadline) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  PollLoop loop;
  Counter handler;
  auto stream = loop.adopt(pair[0]);
  stream->start(&handler);
  stream->out() += std::string(8 << 20, 'x');
  const int64_t begun_us = steady_now_us();
  loop.send_last(50'000);
  EXPECT_GE(steady_now_us() - begun_us, 50'000);
  EXPECT_GT(stream->queued_bytes(), 0u);
  ::close(pair[1]);
}

TEST(PollLoop, AnEarlierTimerWakesASleeper) {
  Owner owner;
  {
    std::lock_guard lock(owner.mutex);
    owner.loop.run_after(120'000'000, [] {});
  }
  bool fired = false, entered = false;
  std::condition_variable condition;
  std::mutex entered_mutex;
  std::thread sleeper([&] {
    {
      std::lock_guard lock(entered_mutex);
      entered = true;
    }
    condition.notify_one();
    EXPECT_TRUE(owner.pump([&] { return fired; }, 120'000'000));
  });
  {
    std::unique_lock lock(entered_mutex);
    condition.wait(lock, [&] { return entered; });
  }
  int64_t start = steady_now_us();
  {
    std::lock_guard lock(owner.mutex);
    owner.loop.run_after(1000, [&] { fired = true; });
  }
  sleeper.join();
  EXPECT_LT(steady_now_us() - start, 60'000'000);
}

TEST(PollLoop, ASignalInterruptsAWait) {
  struct sigaction action{}, before;
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  PollLoop loop;
  PollLoop::Ready ready;
  pthread_t waiter = pthread_self();
  std::atomic<bool> done{false};
  std::thread sender([&] {
    while (!done) {
      pthread_kill(waiter, SIGUSR1);
      std::this_thread::yield();
    }
  });
  while (loop.wait(ready, 10'000'000)) {}
  done = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(PollLoop, WhatWasClosedBetweenWaitAndDispatchIsSkipped) {
  PollLoop loop;
  int first[2], second[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, first), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, second), 0);
  Counter old_handler, new_handler;
  auto old_stream = loop.adopt(first[0]);
  old_stream->start(&old_handler);
  ASSERT_EQ(::send(first[1], "x", 1, 0), 1);
  PollLoop::Ready ready;
  ASSERT_TRUE(loop.wait(ready, 1'000'000));
  ASSERT_EQ(ready.count, 1);
  old_stream.reset();
  auto new_stream = loop.adopt(second[0]);  // Reuses the slot of the old stream.
  new_stream->start(&new_handler);
  loop.dispatch(ready);
  EXPECT_EQ(old_handler.total, 0u);
  EXPECT_EQ(new_handler.total, 0u);
  ASSERT_EQ(::send(second[1], "yy", 2, 0), 2);
  ASSERT_TRUE(loop.wait(ready, 1'000'000));
  loop.dispatch(ready);
  EXPECT_EQ(new_handler.total, 2u);
  ::close(first[1]);
  ::close(second[1]);
}

TEST(PollLoop, ABusyStreamLeavesTurnsToOthersAndLosesNothing) {
  PollLoop loop;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  Counter counter;
  auto stream = loop.adopt(pair[0]);
  // The socket holds more than one turn's share of reads before the stream starts, and no further
  // edge will be reported.
  std::string data(100'000, 'x');
  ASSERT_EQ(::send(pair[1], data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  stream->start(&counter);
  int turns = 0;
  while (counter.total < data.size() && turns < 100) {
    PollLoop::Ready ready;
    loop.wait(ready, 1'000'000);
    loop.dispatch(ready);
    ++turns;
  }
  EXPECT_EQ(counter.total, data.size());
  EXPECT_GT(turns, 1);
  ::close(pair[1]);
}

}  // namespace
}  // namespace rt::net
