// A driver and a number of executing workers of the worker library around a FakeNodeManager, all
// in the test's process.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <span>
#include <thread>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "tests/support/fake_node_manager.h"
#include "worker/worker.h"

namespace rt::test {

// Executes every task by calling `body`, in the worker's thread. The string that `body` returns is
// the task's result; an exception that leaves it becomes the task's error.
class FunctionExecutor final : public worker::Executor {
 public:
  using Body = std::function<std::string(worker::ExecutingTask&)>;
  explicit FunctionExecutor(Body body) : body_(std::move(body)) {}
  void execute(std::unique_ptr<worker::ExecutingTask> task) override {
    task->started();
    worker::ValueParts parts;
    parts.kind = worker::ValueKind::kRaw;
    try {
      std::string result = body_(*task);
      task->executed();
      parts.inband = as_bytes(result);
      task->finish({&parts, 1});
    } catch (const std::exception& e) {
      proto::ErrorValue error;
      error.set_code(100);
      error.set_message(e.what());
      std::string bytes = error.SerializeAsString();
      parts.kind = worker::ValueKind::kError;
      parts.inband = as_bytes(bytes);
      task->fail(parts, true);
    }
  }
  void cancel(const TaskId&) override {}

 private:
  Body body_;
};

// Waits anew whenever a wait ends so that its language can look for signals (kInterrupted). A
// driver's wait ends that way after 50 ms, and on a busy machine even a short one takes that long.
template <typename Wait>
worker::Waited uninterrupted(const Wait& wait) {
  worker::Waited ended;
  do {
    ended = wait();
  } while (ended == worker::Waited::kInterrupted);
  return ended;
}

inline worker::Waited wait_all(worker::Worker& driver, std::span<const worker::Ref> refs,
                               int64_t deadline_us = -1) {
  return uninterrupted([&] { return driver.wait_all(refs, deadline_us, 0); });
}

// Takes the next item of a generator, waiting for it without a deadline.
inline worker::Waited next_item(worker::Worker& driver, const worker::Ref& stream,
                                worker::Ref* item) {
  return uninterrupted([&] { return driver.next_item(stream, -1, item); });
}

// Starts everything in the constructor and ends it in the destructor. Used from the test's thread;
// `body` runs in one thread per worker.
class WorkerPair {
 public:
  using LogSink = decltype(worker::Options::log_sink);
  WorkerPair(int workers, FunctionExecutor::Body body, LogSink log_sink = nullptr)
      : executor_(std::move(body)) {
    char name[] = "/tmp/worker_pair_XXXXXX";
    directory_ = mkdtemp(name);
    node_ = std::make_unique<FakeNodeManager>(directory_);
    Rng rng = Rng::from_system();
    for (int i = 0; i < workers; ++i) {
      worker::Options options;
      options.is_driver = false;
      options.worker_id = WorkerId::random(rng);
      options.node_manager_socket = node_->socket();
      workers_.push_back(worker::Worker::start(options).value());
      threads_.emplace_back([this, w = workers_.back().get()] { w->run(executor_); });
    }
    worker::Options options;
    options.node_manager_socket = node_->socket();
    options.log_sink = std::move(log_sink);
    driver = worker::Worker::start(options).value();
    proto::TaskTemplate spec;
    spec.set_name("f");
    spec.set_num_returns(1);
    spec.set_max_retries(3);
    (*spec.mutable_resources()->mutable_units())["CPU"] = 10000;
    function = *driver->make_template(spec);
  }
  ~WorkerPair() {
    driver.reset();
    node_.reset();  // The workers' run() returns when their node-manager is gone.
    for (auto& thread : threads_) thread.join();
    workers_.clear();
    std::filesystem::remove_all(directory_);
  }
  // Submits a task with `text` as its only argument; `f` defaults to `function`.
  worker::Ref call(const std::string& text, const worker::Template* f = nullptr) {
    worker::ValueParts parts;
    parts.kind = worker::ValueKind::kRaw;
    parts.inband = as_bytes(text);
    worker::Arg arg;
    arg.value = &parts;
    std::vector<worker::Ref> returns;
    RT_CHECK(driver->submit(f ? f : function, {&arg, 1}, &returns));
    return returns.front();
  }
  // Blocks without a deadline until the value is there.
  std::string get(const worker::Ref& ref) {
    RT_CHECK(wait_all(*driver, {&ref, 1}) == worker::Waited::kDone);
    auto value = driver->value_of(ref, 0);
    RT_CHECK(value);
    return std::string(as_view(value->inband));
  }
  worker::Worker& worker(int i) { return *workers_[i]; }
  FakeNodeManager& node() { return *node_; }

  std::unique_ptr<worker::Worker> driver;
  const worker::Template* function = nullptr;

 private:
  std::string directory_;
  FunctionExecutor executor_;
  std::unique_ptr<FakeNodeManager> node_;
  std::vector<std::unique_ptr<worker::Worker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace rt::test
