// The recorder of a process's metrics, and the text that Prometheus reads.
#include <gtest/gtest.h>

#include "observability/metrics/prometheus.h"
#include "observability/metrics/recorder.h"

namespace rt::metrics {
namespace {

using Recorded = Recorder::Recorded;

Definition counter(const std::string& name, std::vector<std::string> tag_keys = {}) {
  return {name, "what it is", proto::Metric::COUNTER, std::move(tag_keys), {}};
}

TEST(Recorder, ReportsTheWholeStateOnceSomethingChanged) {
  Recorder recorder;
  uint32_t requests = recorder.define(counter("requests", {"route"}));
  proto::MetricsReport report;
  EXPECT_FALSE(recorder.report(&report));
  EXPECT_EQ(recorder.record(requests, {"/a"}, 2), Recorded::kReportDue);
  EXPECT_EQ(recorder.record(requests, {"/a"}, 3), Recorded::kDone);
  ASSERT_TRUE(recorder.report(&report));
  ASSERT_EQ(report.metrics_size(), 1);
  EXPECT_EQ(report.metrics(0).series(0).value(), 5);
  EXPECT_EQ(report.metrics(0).series(0).tag_values(0), "/a");
  EXPECT_FALSE(recorder.report(&report));
  EXPECT_EQ(recorder.record(requests, {"/b"}, 1), Recorded::kReportDue);
  proto::MetricsReport next;
  ASSERT_TRUE(recorder.report(&next));
  EXPECT_EQ(next.metrics(0).series_size(), 2);  // The series that did not change is there as well.
}

TEST(Recorder, OneDefinitionIsOneMetric) {
  Recorder recorder;
  EXPECT_EQ(recorder.define(counter("n")), recorder.define(counter("n")));
  EXPECT_NE(recorder.define(counter("n")), recorder.define(counter("n", {"tag"})));
}

TEST(Recorder, GaugesAreReplacedHistogramsCountByUpperBound) {
  Recorder recorder;
  uint32_t gauge = recorder.define({"g", "", proto::Metric::GAUGE, {}, {}});
  uint32_t histogram = recorder.define({"h", "", proto::Metric::HISTOGRAM, {}, {1, 2}});
  recorder.record(gauge, {}, 5);
  recorder.record(gauge, {}, -1.5);
  for (double value : {0.5, 1.0, 1.5, 7.0}) recorder.record(histogram, {}, value);
  proto::MetricsReport report;
  ASSERT_TRUE(recorder.report(&report));
  EXPECT_EQ(report.metrics(0).series(0).value(), -1.5);
  const proto::MetricSeries& series = report.metrics(1).series(0);
  EXPECT_EQ(std::vector<int64_t>(series.buckets().begin(), series.buckets().end()),
            (std::vector<int64_t>{2, 1, 1}));
  EXPECT_EQ(series.value(), 10);
}

TEST(Recorder, TheNumberOfSeriesIsBoundedAndSaidOnce) {
  Recorder recorder;
  uint32_t n = recorder.define(counter("n", {"id"}));
  for (size_t i = 0; i < Recorder::kMaxSeries; ++i) recorder.record(n, {std::to_string(i)}, 1);
  EXPECT_EQ(recorder.record(n, {"more"}, 1), Recorded::kOverflow);
  EXPECT_EQ(recorder.record(n, {"and more"}, 1), Recorded::kDone);
  EXPECT_EQ(recorder.record(n, {"7"}, 1), Recorded::kDone);
  proto::MetricsReport report;
  ASSERT_TRUE(recorder.report(&report));
  EXPECT_EQ(report.metrics(0).series_size(), static_cast<int>(Recorder::kMaxSeries));
}

TEST(Recorder, ClearForgetsValuesNotDefinitions) {
  Recorder recorder;
  uint32_t n = recorder.define(counter("n"));
  recorder.record(n, {}, 4);
  recorder.clear();
  proto::MetricsReport report;
  EXPECT_FALSE(recorder.report(&report));
  EXPECT_EQ(recorder.record(n, {}, 1), Recorded::kReportDue);
  ASSERT_TRUE(recorder.report(&report));
  EXPECT_EQ(report.metrics(0).series(0).value(), 1);
}

NodeMetrics node_of(Recorder& recorder, const std::string& address) {
  NodeMetrics node{"session_x", "2.60.0", address, {}};
  recorder.report(node.metrics.add_reports());
  node.metrics.mutable_reports(0)->set_worker_id("\x01\xff");
  return node;
}

TEST(Prometheus, NamesTypesAndLabels) {
  Recorder recorder;
  recorder.record(recorder.define(counter("requests", {"route"})), {"a\"b\\c\nd"}, 3);
  recorder.record(recorder.define({"level", "two\nlines", proto::Metric::GAUGE, {}, {}}), {}, 2.5);
  recorder.record(recorder.define({"time", "", proto::Metric::HISTOGRAM, {"t"}, {0.5, 2}}), {"x"},
                  1);
  std::vector<NodeMetrics> nodes{node_of(recorder, "10.0.0.1")};
  const std::string common =
      R"(SessionName="session_x",Version="2.60.0",NodeAddress="10.0.0.1",Component="core_worker",WorkerId="01ff")";
  EXPECT_EQ(prometheus_text(nodes),
            "# HELP ray_level two\\nlines\n# TYPE ray_level gauge\nray_level{" + common +
                "} 2.5\n" +
                "# HELP ray_requests_total what it is\n# TYPE ray_requests_total "
                "counter\nray_requests_total{" +
                common + R"(,route="a\"b\\c\nd"} 3)" +
                "\n# HELP ray_time \n# TYPE ray_time histogram\n" + "ray_time_bucket{" + common +
                R"(,t="x",le="0.5"} 0)" + "\nray_time_bucket{" + common + R"(,t="x",le="2"} 1)" +
                "\nray_time_bucket{" + common + R"(,t="x",le="+Inf"} 1)" + "\nray_time_sum{" +
                common + R"(,t="x"} 1)" + "\nray_time_count{" + common + R"(,t="x"} 1)" + "\n");
}

TEST(Prometheus, AMetricOfSeveralNodesIsWrittenOnce) {
  Recorder a, b;
  a.record(a.define(counter("n")), {}, 1);
  b.record(b.define(counter("n")), {}, 2);
  std::vector<NodeMetrics> nodes{node_of(a, "10.0.0.1"), node_of(b, "10.0.0.2")};
  std::string text = prometheus_text(nodes);
  EXPECT_EQ(text.find("# TYPE"), text.rfind("# TYPE"));
  EXPECT_NE(text.find("10.0.0.1"), std::string::npos);
  EXPECT_NE(text.find("10.0.0.2"), std::string::npos);
}

TEST(Prometheus, InvalidMetricNamesAreSanitised) {
  Recorder recorder;
  recorder.record(recorder.define(counter("9 a-b", {"x.y"})), {"v"}, 1);
  std::vector<NodeMetrics> nodes{node_of(recorder, "n")};
  std::string text = prometheus_text(nodes);
  EXPECT_NE(text.find("ray__9_a_b_total{"), std::string::npos);
  EXPECT_NE(text.find(R"(x_y="v")"), std::string::npos);
}

TEST(Prometheus, NoLabelComesTwice) {
  Recorder recorder;
  recorder.record(recorder.define(counter("n", {"WorkerId", "a-b", "a.b"})), {"1", "2", "3"}, 1);
  std::vector<NodeMetrics> nodes{node_of(recorder, "n")};
  std::string text = prometheus_text(nodes);
  EXPECT_NE(text.find(R"(WorkerId="01ff",WorkerId_="1",a_b="2",a_b_="3"})"), std::string::npos)
      << text;
}

TEST(Exposition, CommonLabelsComeFirstAndANameHasOneKind) {
  Exposition out(Labels{{"SessionName", "s"}});
  out.gauge("a", "help", 1);
  out.counter("b_total", "", 2, {{"x", "\xff\""}});
  out.counter("a", "", 3);
  const std::vector<double> bounds{1, 2};
  const std::vector<int64_t> counts{4, 0, 1};
  out.histogram("h", "", bounds, counts, 7.5, "");
  EXPECT_EQ(out.text(),
            "# HELP a help\n# TYPE a gauge\na{SessionName=\"s\"} 1\n"
            "# HELP b_total \n# TYPE b_total "
            "counter\nb_total{SessionName=\"s\",x=\"\xef\xbf\xbd\\\"\"} 2\n"
            "# HELP h \n# TYPE h histogram\nh_bucket{SessionName=\"s\",le=\"1\"} "
            "4\nh_bucket{SessionName=\"s\",le=\"2\"} 4\nh_bucket{SessionName=\"s\",le=\"+Inf\"} 5\n"
            "h_sum{SessionName=\"s\"} 7.5\nh_count{SessionName=\"s\"} 5\n");
}

}  // namespace
}  // namespace rt::metrics
