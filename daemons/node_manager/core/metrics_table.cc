#include "daemons/node_manager/core/metrics_table.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace rt::node {
namespace {

int64_t count_series(const proto::MetricsReport& report) {
  int64_t count = 0;
  for (const proto::Metric& metric : report.metrics()) count += metric.series_size();
  return count;
}

bool fits(const proto::Metric& metric, const proto::MetricSeries& series) {
  int buckets = metric.kind() == proto::Metric::HISTOGRAM ? metric.boundaries_size() + 1 : 0;
  return series.tag_values_size() == metric.tag_keys_size() && series.buckets_size() == buckets;
}

proto::Metric definition_of(const proto::Metric& metric) {
  proto::Metric definition;
  definition.set_name(metric.name());
  definition.set_description(metric.description());
  definition.set_kind(metric.kind());
  *definition.mutable_tag_keys() = metric.tag_keys();
  *definition.mutable_boundaries() = metric.boundaries();
  return definition;
}

// The name under which ended processes are added up. The description is no part of it, because two
// versions of a program may have another one, and Prometheus refuses two series that differ in
// nothing else.
std::string key_of(const proto::Metric& definition) {
  proto::Metric key;
  key.set_name(definition.name());
  key.set_kind(definition.kind());
  *key.mutable_tag_keys() = definition.tag_keys();
  return key.SerializeAsString();
}

bool has_same_buckets(const proto::Metric& a, const proto::Metric& b) {
  return std::equal(a.boundaries().begin(), a.boundaries().end(), b.boundaries().begin(),
                    b.boundaries().end());
}

void add(const proto::MetricSeries& more, proto::MetricSeries* sum) {
  sum->set_value(sum->value() + more.value());
  for (int i = 0; i < more.buckets_size(); ++i)
    sum->set_buckets(i, sum->buckets(i) + more.buckets(i));
}

}  // namespace

MetricsTable::MetricsTable(int64_t max_series) : max_series_(max_series) {}

bool MetricsTable::report(const WorkerId& id, const proto::MetricsReport& report) {
  proto::MetricsReport& kept = living_[id];
  living_series_ -= count_series(kept);
  kept.Clear();
  kept.set_worker_id(id.binary());
  kept.set_job_id(report.job_id());
  kept.set_pid(report.pid());
  bool dropped = false;
  for (const proto::Metric& metric : report.metrics()) {
    proto::Metric* mine = kept.add_metrics();
    *mine = definition_of(metric);
    for (const proto::MetricSeries& series : metric.series()) {
      if (!fits(metric, series)) continue;
      if (!has_room(1)) drop_oldest_ended();
      if (!has_room(1)) {
        dropped = true;
        continue;
      }
      *mine->add_series() = series;
      ++living_series_;
    }
    if (mine->series_size() == 0) kept.mutable_metrics()->RemoveLast();
  }
  return !dropped || std::exchange(overflow_said_, true);
}

void MetricsTable::process_ended(const WorkerId& id) {
  auto node = living_.extract(id);
  if (node.empty()) return;
  living_series_ -= count_series(node.mapped());
  ++ends_;
  for (const proto::Metric& metric : node.mapped().metrics()) {
    if (metric.kind() == proto::Metric::GAUGE) continue;
    proto::Metric definition = definition_of(metric);
    Ended& ended = ended_[key_of(definition)];
    // Buckets with other boundaries cannot be added up: the newest ones count.
    if (!has_same_buckets(ended.definition, definition)) {
      ended_series_ -= static_cast<int64_t>(ended.series.size());
      ended.series.clear();
    }
    for (const proto::MetricSeries& series : metric.series()) {
      auto [it, added] = ended.series.try_emplace(
          {series.tag_values().begin(), series.tag_values().end()}, Sum{series});
      if (added) {
        ++ended_series_;  // within the bound: the series has just left living_series_
      } else {
        add(series, &it->second.series);
      }
      it->second.number = ends_;
    }
    ended.definition = std::move(definition);
  }
}

void MetricsTable::fill(proto::MetricsReply* reply) const {
  for (const auto& [id, report] : living_) *reply->add_reports() = report;
  if (ended_.empty()) return;
  proto::MetricsReport* sums = reply->add_reports();
  for (const auto& [key, ended] : ended_) {
    proto::Metric* metric = sums->add_metrics();
    *metric = ended.definition;
    for (const auto& [tags, sum] : ended.series) *metric->add_series() = sum.series;
  }
}

// A tenth at a time, because each time takes a pass over all of them.
void MetricsTable::drop_oldest_ended() {
  std::vector<uint64_t> numbers;
  for (const auto& [key, ended] : ended_) {
    for (const auto& [tags, sum] : ended.series) numbers.push_back(sum.number);
  }
  if (numbers.empty()) return;
  const auto last = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 10);
  std::nth_element(numbers.begin(), last, numbers.end());
  for (auto& [key, ended] : ended_)
    ended_series_ -= static_cast<int64_t>(std::erase_if(
        ended.series, [&](const auto& entry) { return entry.second.number <= *last; }));
  std::erase_if(ended_, [](const auto& entry) { return entry.second.series.empty(); });
}

void MetricsTable::check_invariants() const {
  int64_t living = 0, ended = 0;
  for (const auto& [id, report] : living_) living += count_series(report);
  for (const auto& [key, metric] : ended_) ended += static_cast<int64_t>(metric.series.size());
  RT_CHECK(living == living_series_);
  RT_CHECK(ended == ended_series_);
  RT_CHECK(has_room(0));
}

}  // namespace rt::node
