#include "tests/sim/watches.h"

#include <fmt/core.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "daemons/node_manager/core/metrics_table.h"
#include "daemons/node_manager/core/store_waits.h"
#include "daemons/node_manager/core/store_watch.h"
#include "tests/sim/world.h"

namespace rt::sim {
namespace {

constexpr int64_t kWatchedUs = 120'000'000;
constexpr int64_t kAskAfterUs = 500'000, kHangsAfterUs = 3'000'000, kSlowestAnswerUs = 100'000;
constexpr int64_t kToldAfterUs = 1'000'000, kEpisodeEndsUs = 10'000'000;

// A store that answers at once or, while it hangs, when it goes on.
class HangingStore {
 public:
  using Answer = std::function<void(const proto::StoreStats&)>;

  HangingStore(World& world, uint32_t jobs) : world_(world) {
    for (uint32_t job = 1; job <= jobs; ++job) begin_to_wait(job_id_from_int(job));
    hang();
  }

  void ask(Answer answer) {
    if (question_)
      violation(fmt::format("seed {}: a store is asked before it has answered", world_.seed));
    question_ = std::move(answer);
    if (!hangs_since_us_) answer_soon();
  }
  // When it began to hang; nothing while it does not.
  std::optional<int64_t> hangs_since_us() const { return hangs_since_us_; }
  int64_t went_on_us() const { return went_on_us_; }
  bool is_asked() const { return question_ != nullptr; }

 private:
  void hang() {
    world_.clock.after(world_.between(0, 20'000'000), "the store hangs", 0, [this] {
      hangs_since_us_ = world_.clock.now_us();
      world_.clock.after(world_.between(0, 3 * kHangsAfterUs), "the store goes on", 0, [this] {
        hangs_since_us_.reset();
        went_on_us_ = world_.clock.now_us();
        if (question_) answer_soon();
        hang();
      });
    });
  }
  void answer_soon() {
    world_.clock.after(world_.between(100, kSlowestAnswerUs), "the store answers", 0, [this] {
      // It may have begun to hang meanwhile, and answers when it goes on.
      if (hangs_since_us_ || !question_) return;
      std::exchange(question_, nullptr)(stats());
    });
  }

  // A job has requests that wait for a while, and then none for a while.
  void begin_to_wait(const JobId& job) {
    const bool is_long = world_.rng.chance(0.5);
    world_.clock.after(
        world_.between(0, is_long ? 25'000'000 : 8'000'000), "a job waits", 0, [this, job] {
          waiting_[job] = world_.clock.now().wall_us / 1000;
          world_.clock.after(world_.between(0, 6'000'000), "a job has room", 0, [this, job] {
            waiting_.erase(job);
            begin_to_wait(job);
          });
        });
  }
  proto::StoreStats stats() {
    proto::StoreStats stats;
    stats.set_capacity(1 << 20);
    stats.set_used(world_.between(0, 1 << 20));
    for (const auto& [job, since_ms] : waiting_) {
      proto::StoreWaiter* waiter = stats.add_waiters();
      waiter->set_job_id(job.binary());
      waiter->set_count(1);
      waiter->set_since_ms(since_ms);
    }
    return stats;
  }

  World& world_;
  std::optional<int64_t> hangs_since_us_;
  int64_t went_on_us_ = 0;
  Answer question_;
  std::map<JobId, int64_t> waiting_;  // since when, by the wall clock in ms
};

// The node-manager of that store, in the short form of daemons/node_manager/service/store_link.
class StoreWatcher final : public Process {
 public:
  StoreWatcher(World& world, HangingStore& store)
      : Process(world.clock, world.network, 1), world_(world), store_(store) {
    act(watch_.tick(clock_.now()));
  }

  // The store is said to hang if it does so for long, and otherwise not.
  void check() const {
    const auto since_us = store_.hangs_since_us();
    const int64_t now_us = clock_.now_us();
    const int64_t hung_us = since_us ? now_us - *since_us : 0;
    if (said_ != watch_.hangs()) wrong("does not say that the state of its store has changed");
    if (said_ && !store_.is_asked()) wrong("says that a store hangs which has answered");
    if (said_ && now_us - asked_us_ < kHangsAfterUs) wrong("says too early that its store hangs");
    if (!said_ && hung_us > kAskAfterUs + kHangsAfterUs + kSlowestAnswerUs)
      wrong("does not say that its store hangs");
    if (said_ && !since_us && now_us - store_.went_on_us() > kSlowestAnswerUs)
      wrong("says that a store hangs which has gone on");
    if (!store_.is_asked() && now_us - answered_us_ > kAskAfterUs) wrong("asks its store no more");
  }
  int64_t hangs() const { return hangs_; }
  int64_t notices() const { return notices_; }

 private:
  struct Job {
    bool is_told = false;
    int64_t waited_us = 0;  // when its requests waited last
  };

  [[noreturn]] void wrong(const std::string& what) const {
    violation(fmt::format("seed {}: the node-manager {}", world_.seed, what));
  }

  void act(const node::StoreWatch::Turn& turn) {
    if (turn.ask) {
      asked_us_ = clock_.now_us();
      store_.ask([this](const proto::StoreStats& stats) {
        answered_us_ = clock_.now_us();
        take(stats);
        act(watch_.answered(clock_.now()));
      });
    }
    const int64_t next_us = watch_.next_tick_us();
    if (next_us >= 0 && next_us <= clock_.now_us()) wrong("does not do what is due");
    ring_by(alarm_, next_us, "watch tick", [this] { act(watch_.tick(clock_.now())); });
    if (!turn.changed) return;
    said_ = watch_.hangs();
    hangs_ += said_ ? 1 : 0;
  }

  void take(const proto::StoreStats& stats) {
    const Now now = clock_.now();
    const node::StoreWaits::Turn turn = waits_.take(stats, now);
    if (turn.changed) head_knows_ = waits_.waits() ? *waits_.waits() : proto::StoreWaits();
    if (head_knows_.waiters_size() != stats.waiters_size())
      wrong("does not report what waits in its store");
    std::map<JobId, int64_t> told;
    for (const proto::LeaseNotice& notice : turn.notices)
      told[JobId::from_binary(notice.job_id())]++;
    notices_ += std::ssize(turn.notices);
    std::map<JobId, int64_t> waits_us;  // for how long
    for (int i = 0; i < stats.waiters_size(); ++i) {
      const proto::StoreWaiter& waiter = stats.waiters(i);
      if (head_knows_.waiters(i).job_id() != waiter.job_id() ||
          head_knows_.waiters(i).since_ms() != waiter.since_ms())
        wrong("reports other requests than those that wait");
      waits_us[JobId::from_binary(waiter.job_id())] = now.wall_us - waiter.since_ms() * 1000;
    }
    for (const auto& [id, waited_us] : waits_us) jobs_.try_emplace(id);
    for (auto& [id, job] : jobs_) {
      auto waiting = waits_us.find(id);
      const bool is_late =
          waiting != waits_us.end() && waiting->second / 1000 * 1000 >= kToldAfterUs;
      if (waiting != waits_us.end()) job.waited_us = now.steady_us;
      if (now.steady_us - job.waited_us >= kEpisodeEndsUs) job.is_told = false;
      const int64_t expected = is_late && !job.is_told ? 1 : 0;
      if (told[id] > expected) wrong("tells a driver more than once an episode what waits");
      if (told[id] < expected) wrong("does not tell a driver that its requests wait");
      job.is_told |= is_late;
    }
  }

  World& world_;
  HangingStore& store_;
  node::StoreWatch watch_{kAskAfterUs, kHangsAfterUs};
  node::StoreWaits waits_{NodeId::random(world_.rng), "10.0.0.1", 5000};
  Alarm alarm_;
  bool said_ = false;
  int64_t asked_us_ = 0, answered_us_ = clock_.now_us(), hangs_ = 0, notices_ = 0;
  proto::StoreWaits head_knows_;
  std::map<JobId, Job> jobs_;
};

// Processes that count and report to the table of their node.
class CountingProcesses {
 public:
  explicit CountingProcesses(World& world)
      : world_(world), bound_(world.rng.chance(0.3) ? world.between(1, 20) : 1'000'000) {
    for (int64_t i = world.between(1, 5); i > 0; --i) start();
  }

  void check() const {
    table_.check_invariants();
    if (table_.series() > bound_) wrong("has more series than it may");
    proto::MetricsReply reply;
    table_.fill(&reply);
    std::map<Series, double> sums;
    for (const proto::MetricsReport& report : reply.reports()) {
      for (const proto::Metric& metric : report.metrics()) {
        for (const proto::MetricSeries& series : metric.series()) {
          sums[{metric.name(), series.tag_values(0)}] += series.value();
          double in_buckets = 0;
          for (const int64_t count : series.buckets()) in_buckets += static_cast<double>(count);
          // Each observation of a histogram has the value 1.
          if (metric.kind() == proto::Metric::HISTOGRAM && in_buckets != series.value())
            wrong("has other buckets than values");
        }
      }
    }
    std::map<Series, double> expected = ended_;
    for (const auto& [id, reported] : reported_) {
      for (const auto& [series, value] : reported) expected[series] += value;
    }
    for (const auto& [series, value] : expected) {
      if (sums[series] > value) wrong(fmt::format("counts too much for {}", series.first));
      if (sums[series] < value && !has_dropped_)
        wrong(fmt::format("counts {} instead of {} for {}", sums[series], value, series.first));
    }
    for (const auto& [series, value] : sums) {
      if (value > 0 && !expected.contains(series))
        wrong(fmt::format("keeps {}, whose process has ended", series.first));
    }
  }
  int64_t processes() const { return processes_; }

 private:
  using Series = std::pair<std::string, std::string>;  // the metric and its tag
  using Values = std::map<Series, double>;

  [[noreturn]] void wrong(const std::string& what) const {
    violation(fmt::format("seed {}: the table of metrics {}", world_.seed, what));
  }

  void start() {
    ++processes_;
    const WorkerId id = WorkerId::random(world_.rng);
    counted_[id];
    count(id);
    world_.clock.after(world_.between(0, 30'000'000), "a process ends", 0, [this, id] {
      counted_.erase(id);
      table_.process_ended(id);
      for (const auto& [series, value] : reported_[id]) {
        if (series.first != "gauge") ended_[series] += value;
      }
      reported_.erase(id);
      if (world_.clock.now_us() < kWatchedUs) start();
    });
  }

  void count(const WorkerId& id) {
    world_.clock.after(world_.between(1'000, 3'000'000), "a process counts", 0, [this, id] {
      if (!counted_.contains(id)) return;
      static constexpr const char* kNames[] = {"counter", "other counter", "histogram", "gauge"};
      Values& counted = counted_.at(id);
      for (int64_t i = world_.between(0, 3); i > 0; --i)
        counted[{kNames[world_.rng.below(4)], std::to_string(world_.rng.below(4))}] += 1;
      if (world_.rng.chance(0.5)) report(id);
      count(id);
    });
  }

  void report(const WorkerId& id) {
    proto::MetricsReport report;
    std::map<std::string, proto::Metric*> metrics;
    for (const auto& [series, value] : counted_.at(id)) {
      proto::Metric*& metric = metrics[series.first];
      const bool is_histogram = series.first == "histogram";
      if (!metric) {
        metric = report.add_metrics();
        metric->set_name(series.first);
        metric->set_kind(is_histogram              ? proto::Metric::HISTOGRAM
                         : series.first == "gauge" ? proto::Metric::GAUGE
                                                   : proto::Metric::COUNTER);
        metric->add_tag_keys("tag");
        if (is_histogram) metric->add_boundaries(2);
      }
      proto::MetricSeries* row = metric->add_series();
      row->add_tag_values(series.second);
      row->set_value(value);
      if (!is_histogram) continue;
      row->add_buckets(static_cast<int64_t>(value));
      row->add_buckets(0);
    }
    const int64_t before = table_.series();
    const bool is_said = !table_.report(id, report);
    if (is_said && was_full_) wrong("says twice that it is full");
    was_full_ |= is_said;
    // Without room it drops the sums of ended processes, and then what was reported.
    const auto more = static_cast<int64_t>(counted_.at(id).size() - reported_[id].size());
    has_dropped_ |= table_.series() < before + more;
    reported_[id] = counted_.at(id);
  }

  World& world_;
  const int64_t bound_;
  node::MetricsTable table_{bound_};
  bool was_full_ = false, has_dropped_ = false;
  int64_t processes_ = 0;
  std::map<WorkerId, Values> counted_, reported_;
  Values ended_;
};

}  // namespace

std::string run_watches(uint64_t seed) {
  World world(seed, NetworkOptions());
  world.clock.print_events(std::getenv("SIM_TRACE") != nullptr);
  HangingStore store(world, static_cast<uint32_t>(world.between(1, 4)));
  StoreWatcher watcher(world, store);
  CountingProcesses processes(world);
  while (world.clock.now_us() < kWatchedUs && world.clock.step()) {
    watcher.check();
    processes.check();
  }
  return fmt::format(
      "seed {}: {} events, the store was said to hang {} times, {} notices, {} processes\n", seed,
      world.clock.events(), watcher.hangs(), watcher.notices(), processes.processes());
}

}  // namespace rt::sim
