#include "observability/metrics/recorder.h"

#include <algorithm>
#include <utility>

namespace rt::metrics {
namespace {

void fill_definition(const Definition& definition, proto::Metric* out) {
  out->set_name(definition.name);
  out->set_description(definition.description);
  out->set_kind(definition.kind);
  for (const std::string& key : definition.tag_keys) out->add_tag_keys(key);
  for (double boundary : definition.boundaries) out->add_boundaries(boundary);
}

}  // namespace

uint32_t Recorder::define(const Definition& definition) {
  proto::Metric key;
  fill_definition(definition, &key);
  // Two modules may describe one metric in different words. It has the words of the first.
  key.clear_description();
  MutexLock lock(mutex_);
  auto [it, added] =
      by_definition_.try_emplace(key.SerializeAsString(), static_cast<uint32_t>(metrics_.size()));
  if (added) metrics_.push_back({definition, {}});
  return it->second;
}

Recorder::Recorded Recorder::record(uint32_t id, const std::vector<std::string>& tag_values,
                                    double value) {
  MutexLock lock(mutex_);
  Metric& metric = metrics_.at(id);
  auto it = metric.series.find(tag_values);
  if (it == metric.series.end()) {
    if (series_ >= kMaxSeries)
      return std::exchange(overflow_said_, true) ? Recorded::kDone : Recorded::kOverflow;
    ++series_;
    it = metric.series.emplace(tag_values, Series{}).first;
    if (metric.definition.kind == proto::Metric::HISTOGRAM)
      it->second.buckets.resize(metric.definition.boundaries.size() + 1);
  }
  Series& series = it->second;
  if (metric.definition.kind == proto::Metric::GAUGE) {
    series.value = value;
  } else {
    series.value += value;
  }
  if (metric.definition.kind == proto::Metric::HISTOGRAM) {
    const auto& bounds = metric.definition.boundaries;
    ++series.buckets[std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin()];
  }
  return std::exchange(changed_, true) ? Recorded::kDone : Recorded::kReportDue;
}

bool Recorder::report(proto::MetricsReport* report) {
  MutexLock lock(mutex_);
  if (!std::exchange(changed_, false)) return false;
  for (const Metric& metric : metrics_) {
    if (metric.series.empty()) continue;
    proto::Metric* out = report->add_metrics();
    fill_definition(metric.definition, out);
    for (const auto& [tags, series] : metric.series) {
      proto::MetricSeries* row = out->add_series();
      for (const std::string& tag : tags) row->add_tag_values(tag);
      row->set_value(series.value);
      for (int64_t count : series.buckets) row->add_buckets(count);
    }
  }
  return true;
}

void Recorder::clear() {
  MutexLock lock(mutex_);
  for (Metric& metric : metrics_) metric.series.clear();
  series_ = 0;
  changed_ = false;
}

}  // namespace rt::metrics
