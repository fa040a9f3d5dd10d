// Lists and summaries of the state API as text, JSON and YAML.
#include "cli/commands/state_text.h"
#include "cli/client/state_common.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cli/terminal/yaml.h"

namespace rt::cli {
namespace {

using api_json::Json;

const Json kRows =
    Json::array({{{"actor_id", "aa"}, {"class_name", "Counter"}, {"pid", 7}, {"name", nullptr}},
                 {{"actor_id", "bb"}, {"class_name", "A"}, {"pid", 12345}, {"name", "x"}}});

TEST(Yaml, IsABlockOfFour) {
  EXPECT_EQ(
      yaml_document(Json::array(
          {{{"a", 1}, {"b", {{"c", nullptr}, {"d", Json::array({"x", {{"e", true}}})}}}}, "text"})),
      "---\n-   a: 1\n    b:\n        c: null\n        d:\n        -   x\n        -   e: true\n-   "
      "text\n...\n");
  EXPECT_EQ(yaml_document(Json::array()), "---\n[]\n...\n");
  EXPECT_EQ(yaml_lines({{"a", Json::object()}, {"b", Json::array()}}), "a: {}\nb: []\n");
}

TEST(Yaml, QuotesWhatIsNoText) {
  for (auto [text, line] : {std::pair{"plain text", "plain text\n"},
                            {"", "''\n"},
                            {"true", "'true'\n"},
                            {"No", "'No'\n"},
                            {"12", "'12'\n"},
                            {"1e5", "'1e5'\n"},
                            {"0x1f", "'0x1f'\n"},
                            {"-1.5", "'-1.5'\n"},
                            {"2024-01-01", "'2024-01-01'\n"},
                            {"null", "'null'\n"},
                            {"~", "'~'\n"},
                            {"a: b", "'a: b'\n"},
                            {"a #b", "'a #b'\n"},
                            {"it's", "it's\n"},
                            {"'q'", "'''q'''\n"},
                            {"- a", "'- a'\n"},
                            {"{x}", "'{x}'\n"},
                            {"@a", "'@a'\n"},
                            {"a:", "'a:'\n"},
                            {" a", "' a'\n"},
                            {"line\nbreak", "\"line\\nbreak\"\n"},
                            {"http://x:1", "http://x:1\n"},
                            {"-x", "-x\n"},
                            {"---", "'---'\n"},
                            {"ff00", "ff00\n"},
                            {"123abc", "'123abc'\n"}}) {
    EXPECT_EQ(yaml_lines(Json(text)), line) << text;
  }
  EXPECT_EQ(yaml_lines(Json("\xff")), "\"\xEF\xBF\xBD\"\n");
  for (auto [text, line] : {std::pair{"FALSE", "'FALSE'\n"},
                            {"falsey", "falsey\n"},
                            {"-.Inf", "'-.Inf'\n"},
                            {"Zürich", "Zürich\n"},
                            {"Zürich\"", "Zürich\"\n"},
                            {"Zü\xff", "\"Zü\xEF\xBF\xBD\"\n"},
                            {"\"\xff", "\"\\\"\xEF\xBF\xBD\"\n"}}) {
    EXPECT_EQ(yaml_lines(Json(text)), line) << text;
  }
}

TEST(Yaml, EscapesWhatReadersDoNotTake) {
  for (auto [text, line] : {std::pair{"a\x7f", "\"a\\u007f\"\n"},
                            {"\xC2\x80z", "\"\\u0080z\"\n"},
                            {"\xC2\x85", "\"\\u0085\"\n"},
                            {"\xC2\x9F", "\"\\u009f\"\n"},
                            {"a\xE2\x80\xA8z", "\"a\\u2028z\"\n"},
                            {"a\xE2\x80\xA9z", "\"a\\u2029z\"\n"},
                            {"\xEF\xBB\xBFz", "\"\\ufeffz\"\n"},
                            {"\xEF\xBF\xBE", "\"\\ufffe\"\n"},
                            {"\xEF\xBF\xBF", "\"\\uffff\"\n"},
                            {"\n\xF0\x9F\x98\x80\x1b\"", "\"\\n\xF0\x9F\x98\x80\\u001b\\\"\"\n"},
                            {"a\xC2\xA0z", "a\xC2\xA0z\n"},
                            {"a\xE2\x80\xA7z", "a\xE2\x80\xA7z\n"},
                            {"a\xEF\xBF\xBDz", "a\xEF\xBF\xBDz\n"}}) {
    EXPECT_EQ(yaml_lines(Json(text)), line) << text;
  }
  EXPECT_EQ(yaml_lines(Json::object({{"k\x7f", 1}})), "\"k\\u007f\": 1\n");
}

TEST(Yaml, WritesNumbersAsJsonDoes) {
  for (double number :
       {0.0, -0.0, 0.5, 1.0, 1.5, -1.0, -64.0, 64.0, 5e11, 1e14, 999'999'999'999'999.0, 1e15, 1e16,
        1e300, 0.0001, 1e-7, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(yaml_lines(Json(number)), Json(number).dump() + "\n");
  }
  for (const Json& value :
       {Json(0), Json(-1), Json(std::numeric_limits<int64_t>::min()),
        Json(std::numeric_limits<uint64_t>::max()), Json(true), Json(nullptr)}) {
    EXPECT_EQ(yaml_lines(value), value.dump() + "\n");
  }
}

TEST(ListText, IsATableWithAnIndex) {
  EXPECT_EQ(list_text(kRows, "default", false, "NOW"),
            "\n======== List: NOW ========\nStats:\n------------------------------\nTotal: "
            "2\n\nTable:\n------------------------------\n"
            "   ACTOR_ID    CLASS_NAME    PID      NAME\n0  aa          Counter       7\n1  bb     "
            "     A             12345    x\n\n");
  EXPECT_EQ(list_text(Json::array(), "default", false, "NOW"), "No resource in the cluster\n");
  // Answers that only an HTTP server other than a head can have given.
  EXPECT_EQ(list_text(Json::parse("[1, null]"), "json", false, ""), "[1,null]\n");
  EXPECT_EQ(list_text(nullptr, "json", false, ""), "[]\n");
}

TEST(ListText, OtherFormatsAreForPrograms) {
  EXPECT_EQ(Json::parse(list_text(kRows, "json", true, "")), kRows);
  EXPECT_TRUE(
      list_text(kRows, "default", true, "")
          .starts_with(
              "---\n-   actor_id: aa\n    class_name: Counter\n    pid: 7\n    name: null\n"));
  EXPECT_EQ(list_text(kRows, "yaml", false, ""), list_text(kRows, "default", true, ""));
  EXPECT_EQ(list_text(Json::array(), "json", false, ""), "[]\n");
}

TEST(ListText, TimesAndSizesAreForPeople) {
  Json row = humanized({{"start_time_ms", 1'700'000'000'123},
                        {"end_time_ms", 0},
                        {"object_size", 3 << 20},
                        {"resources_total", {{"CPU", 2.0}, {"memory", 1024.0}}},
                        {"pid", 5}});
  EXPECT_TRUE(row["start_time_ms"].get<std::string>().ends_with(".123000"));
  EXPECT_EQ(row["end_time_ms"], 0);
  EXPECT_EQ(row["object_size"], "3.000 MiB");
  EXPECT_EQ(row["resources_total"], Json({{"CPU", 2.0}, {"memory", "1.000 KiB"}}));
  EXPECT_EQ(row["pid"], 5);
}

TEST(SummaryText, CountsByName) {
  std::string text = summary_text("tasks",
                                  {{"summary",
                                    {{"f",
                                      {{"func_or_class_name", "f"},
                                       {"type", "NORMAL_TASK"},
                                       {"state_counts", {{"FAILED", 1}, {"FINISHED", 2}}}}}}},
                                   {"total_tasks", 3},
                                   {"summary_by", "func_name"}},
                                  "NOW");
  EXPECT_EQ(text,
            "\n======== Tasks Summary: NOW "
            "========\nStats:\n------------------------------\ntotal_tasks: 3\n\nTable (group by "
            "func_name):\n------------------------------\n"
            "   FUNC_OR_CLASS_NAME    STATE_COUNTS              TYPE\n0  f                     "
            "FAILED: 1, FINISHED: 2    NORMAL_TASK\n\n");
  EXPECT_NE(
      summary_text(
          "objects",
          {{"summary",
            {{"disabled", {{"total_objects", 1}, {"ref_type_counts", {{"LOCAL_REFERENCE", 1}}}}}}},
           {"total_size_mb", 0.5}},
          "NOW")
          .find("total_size_mb: 0.500"),
      std::string::npos);
}

TEST(TruncationText, AdvisesOnlyWhatHelps) {
  EXPECT_EQ(truncation_text(100, 20'000),
            "Showing 100 of 20000. Use --limit (at most 10000) to see more or --filter to select.");
  EXPECT_EQ(truncation_text(10'000, 20'000),
            "Showing 10000 of 20000, the most that a list can show. Use --filter to select.");
}

TEST(Filters, AreWrittenWithEqualSigns) {
  auto filter = parse_filter("name!=a=b");
  ASSERT_TRUE(filter);
  EXPECT_EQ(std::tie(filter->key, filter->equal, filter->value),
            std::make_tuple("name", false, "a=b"));
  EXPECT_EQ(parse_filter("state=")->value, "");
  for (const char* wrong : {"state", "", "=x", "!=x"}) EXPECT_FALSE(parse_filter(wrong)) << wrong;
}

}  // namespace
}  // namespace rt::cli
