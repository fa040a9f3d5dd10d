// The worker library end to end over sockets: a driver, executing workers and a fake node-manager
// in one process.
#include <gtest/gtest.h>

#include "common/net/poll_loop.h"
#include "common/rpc/client.h"
#include "tests/support/worker_pair.h"
#include "worker/core/generator_stream.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"

namespace rt::test {
namespace {

proto::TaskTemplate once() {
  proto::TaskTemplate spec;
  spec.set_name("once");
  spec.set_num_returns(1);
  (*spec.mutable_resources()->mutable_units())["CPU"] = 10000;
  return spec;
}

std::string echo(worker::ExecutingTask& task) {
  return std::string(as_view(task.args().at(0).inband));
}

TEST(WorkerPair, OneTask) {
  WorkerPair pair(1, echo);
  EXPECT_EQ(pair.get(pair.call("hello")), "hello");
}

TEST(WorkerPair, ThousandsInOrderOfTheirRefs) {
  WorkerPair pair(2, echo);
  std::vector<worker::Ref> refs;
  for (int i = 0; i < 20000; ++i) refs.push_back(pair.call(std::to_string(i)));
  ASSERT_EQ(wait_all(*pair.driver, refs), worker::Waited::kDone);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(pair.get(refs[i]), std::to_string(i));
}

TEST(WorkerPair, RefsAsArgumentsBecomeValues) {
  WorkerPair pair(2, [](worker::ExecutingTask& task) {
    std::string all;
    for (auto& value : task.args()) all += std::string(as_view(value.inband)) + ".";
    return all;
  });
  worker::Ref a = pair.call("a");
  worker::Ref b = pair.call("b");
  std::vector<worker::Ref> returns;
  worker::Arg args[2];
  args[0].ref = &a;
  args[1].ref = &b;
  ASSERT_TRUE(pair.driver->submit(pair.function, args, &returns));
  EXPECT_EQ(pair.get(returns[0]), "a..b..");
}

TEST(WorkerPair, CancelReachesARunningTaskAndDoesNothingToAFinishedOne) {
  std::atomic<bool> started{false};
  WorkerPair pair(1, [&](worker::ExecutingTask& task) -> std::string {
    if (as_view(task.args().at(0).inband) == "finish") return "finished";
    started = true;
    while (!task.cancelled()) std::this_thread::yield();
    return "saw it";
  });
  worker::Ref running = pair.call("wait");
  while (!started) std::this_thread::yield();
  ASSERT_TRUE(pair.driver->cancel(running, false, true));
  EXPECT_EQ(pair.get(running), "saw it");
  worker::Ref finished = pair.call("finish");
  EXPECT_EQ(pair.get(finished), "finished");
  ASSERT_TRUE(pair.driver->cancel(finished, true, true));
  EXPECT_EQ(pair.get(finished), "finished");
}

TEST(WorkerPair, ACancelledTaskThatWaitsForItsArgumentNeverRuns) {
  std::atomic<bool> go{false};
  WorkerPair pair(1, [&](worker::ExecutingTask&) -> std::string {
    while (!go) std::this_thread::yield();
    return "done";
  });
  worker::Ref first = pair.call("first");
  worker::Arg arg;
  arg.ref = &first;
  std::vector<worker::Ref> dependent;
  ASSERT_TRUE(pair.driver->submit(pair.function, {&arg, 1}, &dependent));
  ASSERT_TRUE(pair.driver->cancel(dependent[0], false, true));
  ASSERT_EQ(wait_all(*pair.driver, dependent), worker::Waited::kDone);
  auto value = pair.driver->value_of(dependent[0], 0);
  ASSERT_TRUE(value);
  ASSERT_EQ(value->kind, worker::ValueKind::kError);
  EXPECT_EQ(worker::decode_error(value->inband)->code(), static_cast<int>(Code::kCancelled));
  go = true;
  EXPECT_EQ(pair.get(first), "done");
}

TEST(WorkerPair, AnErrorReachesEveryDependent) {
  WorkerPair pair(1,
                  [](worker::ExecutingTask&) -> std::string { throw std::runtime_error("boom"); });
  proto::TaskTemplate spec;
  spec.set_name("fails");
  spec.set_num_returns(1);
  const worker::Template* fails = *pair.driver->make_template(spec);
  worker::Ref bad = pair.call("x", fails);
  std::vector<worker::Ref> returns;
  worker::Arg arg;
  arg.ref = &bad;
  ASSERT_TRUE(pair.driver->submit(pair.function, {&arg, 1}, &returns));
  ASSERT_EQ(wait_all(*pair.driver, returns), worker::Waited::kDone);
  auto value = pair.driver->value_of(returns[0], 0);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->kind, worker::ValueKind::kError);
  EXPECT_EQ(worker::decode_error(value->inband)->message(), "boom");
}

TEST(WorkerPair, UserExceptionsAreRetriedAsOftenAsAllowed) {
  std::atomic<int> runs{0};
  WorkerPair pair(1, [&](worker::ExecutingTask&) -> std::string {
    if (++runs < 3) throw std::runtime_error("not yet");
    return "third";
  });
  EXPECT_EQ(pair.get(pair.call("x")), "third");
  EXPECT_EQ(runs, 3);
}

TEST(WorkerPair, WaitTimesOut) {
  std::atomic<bool> go{false};
  WorkerPair pair(1, [&](worker::ExecutingTask&) {
    while (!go) std::this_thread::yield();
    return std::string("done");
  });
  worker::Ref slow = pair.call("x");
  EXPECT_EQ(wait_all(*pair.driver, {&slow, 1}, steady_now_us() + 20'000), worker::Waited::kTimeout);
  std::vector<bool> ready;
  EXPECT_EQ(pair.driver->wait_some({&slow, 1}, 1, 0, 0, true, &ready), worker::Waited::kTimeout);
  EXPECT_FALSE(ready[0]);
  go = true;
  EXPECT_EQ(pair.get(slow), "done");
}

TEST(WorkerPair, WaitingForAllEndsWithTheFirstFailure) {
  std::atomic<bool> go{false};
  WorkerPair pair(2, [&](worker::ExecutingTask& task) -> std::string {
    if (as_view(task.args().at(0).inband) == "fail") throw std::runtime_error("failed");
    while (!go) std::this_thread::yield();
    return "done";
  });
  const worker::Template* failing = *pair.driver->make_template(once());
  worker::Ref slow = pair.call("wait");
  std::vector<worker::Ref> refs{slow, pair.call("fail", failing)};
  EXPECT_EQ(wait_all(*pair.driver, refs), worker::Waited::kFailed);
  EXPECT_EQ(pair.driver->first_failed(refs, 0), 1u);
  // The failure is seen by a later wait as well.
  EXPECT_EQ(wait_all(*pair.driver, refs), worker::Waited::kFailed);
  EXPECT_EQ(pair.driver->first_failed({&slow, 1}, 0), 1u);
  std::vector<worker::Ref> reversed{pair.call("fail", failing), slow};
  EXPECT_EQ(wait_all(*pair.driver, reversed), worker::Waited::kFailed);
  go = true;
  EXPECT_EQ(pair.get(slow), "done");
  EXPECT_EQ(wait_all(*pair.driver, refs), worker::Waited::kDone);
}

TEST(WorkerPair, AFailureNobodyHasSeenIsReportedWhenItsLastReferenceGoes) {
  std::mutex mutex;
  std::vector<std::string> reported;
  WorkerPair pair(
      1,
      [](worker::ExecutingTask& task) -> std::string {
        throw std::runtime_error(std::string(as_view(task.args().at(0).inband)));
      },
      [&](const std::vector<worker::DriverLine>& lines) {
        std::lock_guard lock(mutex);
        for (const auto& line : lines) {
          if (line.is_notice) continue;
          EXPECT_TRUE(line.is_error && line.is_stderr);
          reported.push_back(line.text);
        }
      });
  const worker::Template* failing = *pair.driver->make_template(once());
  std::vector<bool> ready;
  worker::Ref waited = pair.call("waited", failing), seen = pair.call("seen", failing);
  ASSERT_EQ(
      uninterrupted([&] { return pair.driver->wait_some({&waited, 1}, 1, -1, 0, true, &ready); }),
      worker::Waited::kDone);
  pair.driver->errors_seen({&waited, 1});
  ASSERT_EQ(wait_all(*pair.driver, {&seen, 1}), worker::Waited::kDone);
  pair.driver->errors_seen({&seen, 1});
  worker::Ref argument = pair.call("argument", failing);
  std::vector<worker::Ref> dependent;
  worker::Arg arg{.ref = &argument};
  ASSERT_TRUE(pair.driver->submit(failing, {&arg, 1}, &dependent));
  ASSERT_EQ(wait_all(*pair.driver, dependent), worker::Waited::kDone);
  pair.driver->errors_seen(dependent);
  waited.reset();
  seen.reset();
  argument.reset();
  dependent.clear();
  pair.call("dropped", failing).reset();
  worker::Ref last = pair.call("last", failing);
  ASSERT_EQ(wait_all(*pair.driver, {&last, 1}), worker::Waited::kDone);
  last.reset();
  pair.driver.reset();
  ASSERT_EQ(reported.size(), 2u);
  EXPECT_NE(reported[0].find("Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): "),
            std::string::npos);
  EXPECT_NE(reported[0].find("ray::"), std::string::npos);
}

TEST(WorkerPair, WhatTheNodeManagerSaysAtRegistrationReachesTheDriver) {
  std::vector<std::string> said;
  WorkerPair pair(0, echo, [&](const std::vector<worker::DriverLine>& lines) {
    for (const auto& line : lines) said.push_back(line.text);
  });
  pair.driver.reset();
  EXPECT_EQ(said, std::vector<std::string>{FakeNodeManager::kGreeting});
}

TEST(WorkerPair, ManyThreadsGet) {
  WorkerPair pair(2, echo);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        std::string text = std::to_string(t * 1000 + i);
        good += pair.get(pair.call(text)) == text;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 8 * 300);
}

TEST(WorkerPair, PutsAreReadBackAndFreed) {
  WorkerPair pair(1, echo);
  worker::ValueParts parts;
  parts.kind = worker::ValueKind::kRaw;
  std::string text = "value";
  parts.inband = as_bytes(text);
  for (int i = 0; i < 100000; ++i) {
    auto ref = pair.driver->put(parts);
    ASSERT_TRUE(ref);
    if (i % 1000 == 0) {
      EXPECT_EQ(pair.get(*ref), "value");
    }
  }
}

TEST(WorkerPair, ATaskNobodyWaitsForRuns) {
  std::atomic<int> runs{0};
  WorkerPair pair(1, [&](worker::ExecutingTask&) {
    ++runs;
    return std::string();
  });
  for (int i = 0; i < 10; ++i) pair.call("x");
  int64_t limit = steady_now_us() + 60'000'000;
  while (runs < 10 && steady_now_us() < limit) std::this_thread::yield();
  EXPECT_EQ(runs, 10);
}

// A template of generator tasks; `limit` is the number of untaken items at which they wait, 0 for
// none.
const worker::Template* generator_of(WorkerPair& pair, int64_t limit = 0) {
  proto::TaskTemplate spec;
  spec.set_name("g");
  spec.set_num_returns(worker::kStreamingReturns);
  spec.set_max_retries(3);
  spec.set_generator_backpressure(limit);
  (*spec.mutable_resources()->mutable_units())["CPU"] = 10000;
  return *pair.driver->make_template(spec);
}

void yield(worker::ExecutingTask& task, const std::string& text) {
  worker::ValueParts parts;
  parts.kind = worker::ValueKind::kRaw;
  parts.inband = as_bytes(text);
  RT_CHECK(task.skip_item() || task.item(parts));
}

// Takes all remaining items of the stream, waiting until it ends.
std::vector<std::string> drain(WorkerPair& pair, const worker::Ref& stream) {
  std::vector<std::string> all;
  for (worker::Ref item; next_item(*pair.driver, stream, &item) == worker::Waited::kDone && item;)
    all.push_back(pair.get(item));
  return all;
}

TEST(WorkerPair, AGeneratorsItemsComeOneByOne) {
  std::atomic<int> go{0};
  WorkerPair pair(1, [&](worker::ExecutingTask& task) -> std::string {
    for (int i = 0; i < 3; ++i) {
      while (go < i) std::this_thread::yield();
      yield(task, std::to_string(i));
    }
    while (go < 3) std::this_thread::yield();
    return "";
  });
  worker::Ref stream = pair.call("", generator_of(pair));
  for (int i = 0; i < 3; ++i) {
    worker::Ref item;
    ASSERT_EQ(next_item(*pair.driver, stream, &item), worker::Waited::kDone);
    EXPECT_EQ(pair.get(item), std::to_string(i));
    EXPECT_EQ(pair.driver->next_item(stream, 0, &item), worker::Waited::kTimeout);
    go = i + 1;
  }
  EXPECT_TRUE(drain(pair, stream).empty());
}

TEST(WorkerPair, ARepeatedAttemptSendsWhatIsMissing) {
  WorkerPair pair(1, [&](worker::ExecutingTask& task) -> std::string {
    for (int i = 0; i < 2 + 2 * task.attempt(); ++i)
      yield(task, std::to_string(task.attempt()) + "." + std::to_string(i));
    if (task.attempt() < 2) throw std::runtime_error("again");
    return "";
  });
  worker::Ref stream = pair.call("", generator_of(pair));
  EXPECT_EQ(drain(pair, stream),
            (std::vector<std::string>{"0.0", "0.1", "1.2", "1.3", "2.4", "2.5"}));
}

TEST(WorkerPair, AProducerStaysWithinItsLimit) {
  std::atomic<int> yielded{0}, taken{0};
  std::atomic<bool> beyond{false};
  WorkerPair pair(1, [&](worker::ExecutingTask& task) -> std::string {
    for (int i = 0; i < 200; ++i) {
      if (yielded - taken >= 5) beyond = true;
      ++yielded;
      yield(task, std::to_string(i));
      EXPECT_EQ(uninterrupted([&] { return task.wait_for_room(); }), worker::Waited::kDone);
    }
    return "";
  });
  worker::Ref stream = pair.call("", generator_of(pair, 5));
  for (int i = 0; i < 200; ++i) {
    worker::Ref item;
    // Counted before the call, because the producer may learn of it before the call returns.
    ++taken;
    ASSERT_EQ(next_item(*pair.driver, stream, &item), worker::Waited::kDone);
    ASSERT_EQ(pair.get(item), std::to_string(i));
  }
  EXPECT_TRUE(drain(pair, stream).empty());
  EXPECT_FALSE(beyond);
}

TEST(WorkerPair, ItemsOfATaskThatIsNotInFlightCloseTheConnectionAndDoNothingElse) {
  WorkerPair pair(1, [&](worker::ExecutingTask& task) -> std::string {
    yield(task, "item");
    return "";
  });
  worker::Ref stream = pair.call("", generator_of(pair));
  worker::Ref put = pair.driver->put({}).value();
  net::PollLoop loop;
  rpc::Identity stranger;
  stranger.role = "worker";
  Rng rng(7);
  stranger.id = WorkerId::random(rng).binary();
  std::shared_ptr<rpc::Connection> connection;
  bool closed = false;
  auto until = [&](auto done) {
    for (net::PollLoop::Ready ready; !done(); loop.dispatch(ready)) loop.wait(ready = {}, 100'000);
  };
  rpc::connect(loop,
               {net::Address::unix_socket(pair.driver->owner_of(put).socket_path()), "self", ""},
               stranger, 60'000'000, [&](auto result) { connection = result.value(); });
  until([&] { return connection != nullptr; });
  connection->set_closed_handler([&](const Error&) { closed = true; });
  worker::wire::Writer writer(connection->begin_flat(worker::wire::kItems));
  const uint32_t sequence_number = 1, item = 0;
  writer.fields(sequence_number, item);
  writer.inline_value("");
  connection->end_flat();
  connection->flush();
  until([&] { return closed; });
  EXPECT_EQ(drain(pair, stream), std::vector<std::string>{"item"});
}

}  // namespace
}  // namespace rt::test
