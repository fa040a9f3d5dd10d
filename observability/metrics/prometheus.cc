#include "observability/metrics/prometheus.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/base/ids.h"

namespace rt::metrics {
namespace {

Kind kind_of(proto::Metric::Kind kind) {
  return kind == proto::Metric::COUNTER     ? Kind::kCounter
         : kind == proto::Metric::HISTOGRAM ? Kind::kHistogram
                                            : Kind::kGauge;
}

constexpr const char* kCommon[] = {"SessionName", "Version", "NodeAddress", "Component",
                                   "WorkerId"};

// The labels of a series: `common`, then its tags. Underscores are appended to the name of a tag
// that equals another label, as Prometheus refuses a scrape with duplicate labels.
std::string labels_of(const std::string& common, const proto::Metric& metric,
                      const proto::MetricSeries& series) {
  std::string labels = common;
  std::set<std::string> taken(std::begin(kCommon), std::end(kCommon));
  taken.insert("le");
  for (int i = 0; i < std::min(metric.tag_keys_size(), series.tag_values_size()); ++i) {
    std::string name = Exposition::label_name(metric.tag_keys(i));
    while (!taken.insert(name).second) name += "_";
    labels += "," + Exposition::text_of({{name, series.tag_values(i)}});
  }
  return labels;
}

}  // namespace

void add_user_metrics(const NodeMetrics& node, Exposition* out) {
  for (const proto::MetricsReport& report : node.metrics.reports()) {
    std::string common = Exposition::text_of({{kCommon[0], node.session_name},
                                              {kCommon[1], node.version},
                                              {kCommon[2], node.node_address},
                                              {kCommon[3], "core_worker"},
                                              {kCommon[4], to_hex(report.worker_id())}});
    for (const proto::Metric& metric : report.metrics()) {
      Kind kind = kind_of(metric.kind());
      std::string name = "ray_" + Exposition::metric_name(metric.name()) +
                         (kind == Kind::kCounter ? "_total" : "");
      for (const proto::MetricSeries& series : metric.series()) {
        std::string labels = labels_of(common, metric, series);
        if (kind == Kind::kHistogram) {
          out->histogram(
              name, metric.description(),
              std::span(metric.boundaries().data(), static_cast<size_t>(metric.boundaries_size())),
              std::span(series.buckets().data(), static_cast<size_t>(series.buckets_size())),
              series.value(), labels);
        } else {
          out->add(name, kind, metric.description(), series.value(), labels);
        }
      }
    }
  }
}

std::string prometheus_text(std::span<const NodeMetrics> nodes) {
  Exposition out;
  for (const NodeMetrics& node : nodes) add_user_metrics(node, &out);
  return out.text();
}

}  // namespace rt::metrics
