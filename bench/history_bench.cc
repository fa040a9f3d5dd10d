// Fills a head's history with finished tasks and measures how long filtered lists of them take.
// bench/history.py starts it.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"
#include "launch/node/launch.h"
#include "observability/events/task_digest.h"
#include "observability/state/query.h"

namespace rt {
namespace {

constexpr int kFunctions = 20, kWorkers = 16, kRounds = 5;
constexpr int64_t kFailedEach = 1000;

// The ids that one owner gives its tasks, which its workers execute in turns.
TaskId task_of(int64_t i) {
  return make_task_id(0x9e3779b97f4a7c15ull + static_cast<uint64_t>(i), job_id_from_int(1));
}

TaskEventBatchData batch_of(int64_t first, int64_t count, int64_t start_us) {
  TaskEventBatchData batch;
  int worker = static_cast<int>(first / count % kWorkers);
  batch.node_ip = "127.0.0.1";
  batch.worker_hex = fmt::format("{:056x}", worker);
  batch.node_hex = std::string(56, 'a');
  batch.pid = static_cast<uint32_t>(1000 + worker);
  batch.strings.emplace_back();
  batch.strings.emplace_back("ValueError\nboom\nTraceback (most recent call last):\n  somewhere");
  std::string sender = driver_worker_id(job_id_from_int(1)).binary();
  batch.strings.push_back(sender.append("127.0.0.1"));
  for (int i = 0; i < kFunctions; ++i) batch.strings.push_back(fmt::format("function_{}", i));
  const int64_t round = first / (count * kWorkers) * count * kWorkers;
  for (int64_t i = first; i < first + count; ++i) {
    TaskEvent event;
    event.task = task_of(round + (i - first) * kWorkers + worker);
    event.name = event.function = static_cast<uint32_t>(3 + i % kFunctions);
    event.error = i % kFailedEach == 0 ? 1 : 0;
    event.owner = 2;
    event.start_us = start_us + i;
    event.created_us = event.start_us - 500;
    event.execute_us = 100 + i % 900;
    batch.events.push_back(event);
  }
  return batch;
}

Status fill(const state::Cluster& cluster, int64_t tasks, int64_t batch_size) {
  RT_ASSIGN(auto address, net::Address::parse(cluster.head_address));
  rpc::Identity me;
  me.role = "client";
  me.token = cluster.token;
  RT_ASSIGN(auto client, rpc::SyncClient::connect({.address = address}, me, 5'000'000));
  const int64_t start_us = wall_now_us() - 3600LL * 1'000'000;
  for (int64_t first = 0; first < tasks; first += batch_size) {
    TaskEventBatchData data = batch_of(first, std::min(batch_size, tasks - first), start_us);
    proto::TaskEventBatch batch;
    batch.set_job_id(job_id_from_int(1).binary());
    batch.set_min_time_us(data.events.front().start_us);
    batch.set_max_time_us(data.events.back().start_us + 1000);
    batch.set_count(static_cast<int64_t>(data.events.size()));
    batch.set_packed(pack_task_events(data));
    batch.set_digest(pack_task_digest(data));
    RT_TRY(client->call(&proto::HeadService::Stub::AddTaskEvents, batch));
  }
  return {};
}

Status measure(const state::Cluster& cluster, const char* what,
               std::vector<state::Filter> filters) {
  state::Query query{"tasks"};
  query.filters = std::move(filters);
  std::vector<double> took_ms;
  int64_t total = 0, shown = 0;
  for (int i = 0; i < kRounds; ++i) {
    int64_t start_us = steady_now_us();
    RT_ASSIGN(auto answer, state::list(cluster, query));
    took_ms.push_back(static_cast<double>(steady_now_us() - start_us) / 1000);
    total = answer.json["num_filtered"];
    shown = answer.json["num_after_truncation"];
    if (!answer.json["warnings"].is_null())
      fmt::print("  warnings: {}\n", answer.json["warnings"].dump());
  }
  std::sort(took_ms.begin(), took_ms.end());
  fmt::print("{:<28} {:>9} match, {:>4} shown: {:>7.1f} ms median of {}, {:.1f} ms worst\n", what,
             total, shown, took_ms[kRounds / 2], kRounds, took_ms.back());
  return {};
}

Status run(const std::string& address, int64_t tasks, int64_t batch_size) {
  state::Cluster cluster{address, ""};
  RT_ASSIGN(cluster.token, launch::auth_token(false));
  int64_t start_us = steady_now_us();
  RT_TRY(fill(cluster, tasks, batch_size));
  fmt::print("{} tasks in batches of {}: written in {:.1f} s\n", tasks, batch_size,
             static_cast<double>(steady_now_us() - start_us) / 1e6);
  RT_TRY(measure(cluster, "no filter", {}));
  RT_TRY(measure(cluster, "state=FAILED", {{"state", true, "FAILED"}}));
  RT_TRY(measure(cluster, "name=function_7", {{"name", true, "function_7"}}));
  RT_TRY(measure(cluster, "name=..., state=FAILED",
                 {{"name", true, "function_0"}, {"state", true, "FAILED"}}));
  RT_TRY(measure(cluster, "worker_pid=1003", {{"worker_pid", true, "1003"}}));
  RT_TRY(measure(cluster, "nothing matches", {{"name", true, "none"}}));
  return measure(cluster, "task_id=...", {{"task_id", true, task_of(12345).hex()}});
}

}  // namespace
}  // namespace rt

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr,
               "usage: history_bench HOST:PORT TASKS TASKS_OF_A_BATCH (see bench/history.py)\n");
    return 2;
  }
  rt::Status done = rt::run(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}
