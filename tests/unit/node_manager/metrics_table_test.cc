// The metrics that a node-manager keeps: the last report of every living process, and the sums of
// those that ended.
#include "daemons/node_manager/core/metrics_table.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::node {
namespace {

struct Table : testing::Test {
  WorkerId worker(uint64_t n) {
    Rng rng(n);
    return WorkerId::random(rng);
  }
  static proto::MetricsReport report_of(proto::Metric::Kind kind,
                                        const std::vector<std::pair<std::string, double>>& series) {
    proto::MetricsReport report;
    proto::Metric* metric = report.add_metrics();
    metric->set_name("m");
    metric->set_kind(kind);
    metric->add_tag_keys("k");
    for (const auto& [tag, value] : series) {
      proto::MetricSeries* row = metric->add_series();
      row->add_tag_values(tag);
      row->set_value(value);
    }
    return report;
  }
  bool report_from(MetricsTable& table, const WorkerId& id, const proto::MetricsReport& report) {
    bool told = table.report(id, report);
    table.check_invariants();
    return told;
  }
  static proto::MetricsReply all(const MetricsTable& table) {
    proto::MetricsReply reply;
    table.fill(&reply);
    return reply;
  }
};

TEST_F(Table, AReportReplacesTheOneBefore) {
  MetricsTable table;
  report_from(table, worker(1), report_of(proto::Metric::COUNTER, {{"a", 1}, {"b", 1}}));
  report_from(table, worker(1), report_of(proto::Metric::COUNTER, {{"a", 5}}));
  proto::MetricsReply reply = all(table);
  ASSERT_EQ(reply.reports_size(), 1);
  EXPECT_EQ(reply.reports(0).worker_id(), worker(1).binary());
  EXPECT_EQ(reply.reports(0).metrics(0).series_size(), 1);
  EXPECT_EQ(reply.reports(0).metrics(0).series(0).value(), 5);
}

TEST_F(Table, CountersOfEndedProcessesStayInTheSums) {
  MetricsTable table;
  for (uint64_t n : {1, 2})
    report_from(table, worker(n), report_of(proto::Metric::COUNTER, {{"a", 3}}));
  table.process_ended(worker(1));
  table.process_ended(worker(2));
  table.process_ended(worker(2));
  table.check_invariants();
  proto::MetricsReply reply = all(table);
  ASSERT_EQ(reply.reports_size(), 1);
  EXPECT_EQ(reply.reports(0).worker_id(), "");
  EXPECT_EQ(reply.reports(0).metrics(0).series(0).value(), 6);
  EXPECT_EQ(table.series(), 1);
}

TEST_F(Table, GaugesEndWithTheirProcess) {
  MetricsTable table;
  report_from(table, worker(1), report_of(proto::Metric::GAUGE, {{"a", 3}}));
  table.process_ended(worker(1));
  EXPECT_EQ(all(table).reports_size(), 0);
}

TEST_F(Table, HistogramsAddUpByBucket) {
  MetricsTable table;
  proto::MetricsReport report = report_of(proto::Metric::HISTOGRAM, {{"a", 4}});
  report.mutable_metrics(0)->add_boundaries(1);
  for (int64_t count : {2, 3}) report.mutable_metrics(0)->mutable_series(0)->add_buckets(count);
  for (uint64_t n : {1, 2}) {
    report_from(table, worker(n), report);
    table.process_ended(worker(n));
  }
  proto::MetricsReply reply = all(table);
  const proto::MetricSeries& sum = reply.reports(0).metrics(0).series(0);
  EXPECT_EQ(sum.value(), 8);
  EXPECT_EQ(sum.buckets(0), 4);
  EXPECT_EQ(sum.buckets(1), 6);
}

TEST_F(Table, TheNumberOfSeriesIsBoundedAndSaidOnce) {
  MetricsTable table(3);
  EXPECT_TRUE(
      report_from(table, worker(1), report_of(proto::Metric::COUNTER, {{"a", 1}, {"b", 1}})));
  EXPECT_FALSE(
      report_from(table, worker(2), report_of(proto::Metric::COUNTER, {{"a", 1}, {"b", 1}})));
  EXPECT_TRUE(
      report_from(table, worker(2), report_of(proto::Metric::COUNTER, {{"a", 1}, {"b", 1}})));
  EXPECT_EQ(table.series(), 3);
  table.process_ended(worker(1));
  table.check_invariants();
  EXPECT_EQ(table.series(), 3);  // The sums of ended processes count as well.
}

TEST_F(Table, TheSumsOfThoseThatEndedFirstMakeRoomForTheLiving) {
  MetricsTable table(3);
  uint64_t n = 0;
  for (const char* tag : {"first", "second", "third"}) {
    EXPECT_TRUE(report_from(table, worker(++n), report_of(proto::Metric::COUNTER, {{tag, 1}})));
    table.process_ended(worker(n));
  }
  EXPECT_TRUE(report_from(table, worker(++n), report_of(proto::Metric::COUNTER, {{"new", 1}})));
  proto::MetricsReply reply = all(table);
  ASSERT_EQ(reply.reports_size(), 2);
  EXPECT_EQ(reply.reports(0).metrics(0).series(0).tag_values(0), "new");
  const proto::Metric& ended = reply.reports(1).metrics(0);
  ASSERT_EQ(ended.series_size(), 2);
  EXPECT_EQ(ended.series(0).tag_values(0), "second");
  EXPECT_EQ(ended.series(1).tag_values(0), "third");
}

TEST_F(Table, AnotherDescriptionIsTheSameMetric) {
  MetricsTable table;
  auto report = report_of(proto::Metric::COUNTER, {{"a", 5}});
  report.mutable_metrics(0)->set_description("old");
  report_from(table, worker(1), report);
  report.mutable_metrics(0)->set_description("new");
  report_from(table, worker(2), report);
  table.process_ended(worker(1));
  table.process_ended(worker(2));
  proto::MetricsReply reply = all(table);
  ASSERT_EQ(reply.reports(0).metrics_size(), 1);
  EXPECT_EQ(reply.reports(0).metrics(0).description(), "new");
  ASSERT_EQ(reply.reports(0).metrics(0).series_size(), 1);
  EXPECT_EQ(reply.reports(0).metrics(0).series(0).value(), 10);
}

TEST_F(Table, BucketsWithOtherBoundariesReplaceTheOldOnes) {
  MetricsTable table;
  auto report = report_of(proto::Metric::HISTOGRAM, {{"a", 1}});
  proto::Metric& metric = *report.mutable_metrics(0);
  for (double boundary : {1.0, 2.0}) {
    metric.clear_boundaries();
    metric.add_boundaries(boundary);
    proto::MetricSeries& series = *metric.mutable_series(0);
    series.clear_buckets();
    series.add_buckets(1);
    series.add_buckets(0);
    const WorkerId id = worker(static_cast<uint64_t>(boundary));
    report_from(table, id, report);
    table.process_ended(id);
    table.check_invariants();
  }
  proto::MetricsReply reply = all(table);
  ASSERT_EQ(reply.reports(0).metrics_size(), 1);
  EXPECT_EQ(reply.reports(0).metrics(0).boundaries(0), 2.0);
  EXPECT_EQ(reply.reports(0).metrics(0).series(0).value(), 1);
}

TEST_F(Table, WhatIsNotWellFormedIsLeftOut) {
  MetricsTable table;
  proto::MetricsReport report = report_of(proto::Metric::COUNTER, {{"a", 1}, {"b", 1}});
  report.mutable_metrics(0)->mutable_series(0)->add_tag_values("one more than keys");
  report.mutable_metrics(0)->mutable_series(1)->add_buckets(1);
  EXPECT_TRUE(report_from(table, worker(1), report));
  EXPECT_EQ(table.series(), 0);
}

}  // namespace
}  // namespace rt::node
