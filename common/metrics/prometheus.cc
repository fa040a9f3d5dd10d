#include "common/metrics/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "common/base/ids.h"

namespace rt::metrics {
namespace {

// [a-zA-Z_:][a-zA-Z0-9_:]*, without the colon for labels.
std::string name_of(std::string_view raw, bool label) {
  std::string name(raw);
  for (char& c : name) {
    bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c == ':' && !label);
    if (!fits) c = '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "_");
  return name;
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

struct Family {
  proto::Metric::Kind kind;
  std::string help, samples;
};

std::string_view type_name(proto::Metric::Kind kind) {
  return kind == proto::Metric::COUNTER ? "counter" : kind == proto::Metric::GAUGE ? "gauge" : "histogram";
}

void add_histogram(const std::string& name, const std::string& labels, const proto::Metric& metric, const proto::MetricSeries& series, std::string* out) {
  int64_t count = 0;
  for (int i = 0; i < series.buckets_size(); ++i) {
    count += series.buckets(i);
    double bound = i < metric.boundaries_size() ? metric.boundaries(i) : INFINITY;
    fmt::format_to(std::back_inserter(*out), "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, number(bound), count);
  }
  fmt::format_to(std::back_inserter(*out), "{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, number(series.value()), count);
}

}  // namespace

std::string prometheus_text(std::span<const NodeMetrics> nodes) {
  std::map<std::string, Family> families;
  for (const NodeMetrics& node : nodes) {
    for (const proto::MetricsReport& report : node.metrics.reports()) {
      std::string common = fmt::format(R"(SessionName="{}",Version="{}",NodeAddress="{}",Component="core_worker",WorkerId="{}")", escaped(node.session_name, true),
                                       escaped(node.version, true), escaped(node.node_address, true), to_hex(report.worker_id()));
      for (const proto::Metric& metric : report.metrics()) {
        std::string name = "ray_" + name_of(metric.name(), false) + (metric.kind() == proto::Metric::COUNTER ? "_total" : "");
        Family& family = families.try_emplace(name, Family{metric.kind(), metric.description(), ""}).first->second;
        if (family.kind != metric.kind()) continue;
        for (const proto::MetricSeries& series : metric.series()) {
          std::string labels = common;
          for (int i = 0; i < std::min(metric.tag_keys_size(), series.tag_values_size()); ++i) {
            labels += fmt::format(",{}=\"{}\"", name_of(metric.tag_keys(i), true), escaped(series.tag_values(i), true));
          }
          if (metric.kind() == proto::Metric::HISTOGRAM) {
            add_histogram(name, labels, metric, series, &family.samples);
          } else {
            fmt::format_to(std::back_inserter(family.samples), "{}{{{}}} {}\n", name, labels, number(series.value()));
          }
        }
      }
    }
  }
  std::string text;
  for (const auto& [name, family] : families) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{3}", name, escaped(family.help, false), type_name(family.kind), family.samples);
  }
  return text;
}

}  // namespace rt::metrics
