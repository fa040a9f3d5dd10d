// Parsing of the HTTP requests that submit jobs, of label selectors, and the pieces of streamed
// logs.
#include "observability/api_json/job_request.h"

#include <gtest/gtest.h>

#include "common/resources/label_selector.h"
#include "common/resources/resource_set.h"
#include "daemons/head/http/log_frames.h"

namespace rt::head {
namespace {

using api_json::JobRequestError, api_json::parse_job_request;

int status_of(const std::string& body, std::string* text = nullptr) {
  proto::SubmitJobRequest request;
  JobRequestError error{200, ""};
  parse_job_request(body, &request, &error);
  if (text) *text = error.text;
  return error.status;
}

TEST(JobRequest, TakesEveryField) {
  proto::SubmitJobRequest request;
  JobRequestError error;
  const std::string body =
      R"J({"entrypoint": "echo", "submission_id": "a", "job_id": null, "runtime_env": {"env_vars": {"A": "b"}}, "metadata": {"k": "v"},
    "entrypoint_num_cpus": 0.5, "entrypoint_num_gpus": 1, "entrypoint_memory": 1000, "entrypoint_resources": {"thing": 2}, "entrypoint_label_selector": {"zone": "!in(a, b)"}})J";
  ASSERT_TRUE(parse_job_request(body, &request, &error)) << error.text;
  EXPECT_EQ(request.submission_id(), "a");
  EXPECT_EQ(request.runtime_env_json(), R"({"env_vars":{"A":"b"}})");
  EXPECT_EQ(request.metadata().at("k"), "v");
  ResourceSet resources = ResourceSet::from_proto(request.entrypoint_resources());
  EXPECT_EQ(resources.get("CPU"), 0.5);
  EXPECT_EQ(resources.get("GPU"), 1);
  EXPECT_EQ(resources.get("memory"), 1000);
  EXPECT_EQ(resources.get("thing"), 2);
  ASSERT_EQ(request.entrypoint_labels().rules_size(), 1);
  EXPECT_EQ(request.entrypoint_labels().rules(0).op(), proto::LabelRule::NOT_IN);
  EXPECT_EQ(request.entrypoint_labels().rules(0).values(1), "b");
}

TEST(JobRequest, TheOldNameOfTheIdIsTakenToo) {
  proto::SubmitJobRequest request;
  JobRequestError error;
  ASSERT_TRUE(parse_job_request(R"({"entrypoint": "echo", "job_id": "old"})", &request, &error));
  EXPECT_EQ(request.submission_id(), "old");
  ASSERT_TRUE(parse_job_request(
      R"({"entrypoint": "echo", "job_id": "old", "submission_id": "new"})", &request, &error));
  EXPECT_EQ(request.submission_id(), "new");
}

TEST(JobRequest, NestingHasABound) {
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  std::string text;
  for (const std::string& body :
       {nested(1'000'000), R"({"entrypoint": "x", "runtime_env": {"a": )" + nested(99) + "}}",
        std::string(1'000'000, '[')}) {
    EXPECT_EQ(status_of(body, &text), 400);
    EXPECT_EQ(text, "the body is nested more than 100 deep");
  }
  EXPECT_EQ(status_of(R"({"entrypoint": "x", "runtime_env": {"a": )" + nested(98) + "}}"), 200);
  EXPECT_EQ(
      status_of(R"({"entrypoint": "\"[[", "metadata": {"a": ")" + std::string(1000, '[') + "\"}}"),
      200)
      << "brackets of a text";
}

TEST(JobRequest, WhatIsWrongIsNamed) {
  std::string text;
  EXPECT_EQ(status_of("{nonsense", &text), 500);
  EXPECT_EQ(status_of("[]"), 400);
  EXPECT_EQ(status_of("{}", &text), 400);
  EXPECT_NE(text.find("entrypoint"), std::string::npos);
  EXPECT_EQ(status_of(R"({"entrypoint": "x", "colour": 1})", &text), 400);
  EXPECT_NE(text.find("'colour'"), std::string::npos);
  for (const char* field :
       {R"("metadata": {"a": 1})", R"("entrypoint_num_cpus": "1")", R"("entrypoint_memory": 1.5)",
        R"("entrypoint_resources": {"CPU": 1})", R"("runtime_env": [])",
        R"("entrypoint_num_gpus": -1)", R"("entrypoint_label_selector": {"zone": "in(a"})",
        R"("submission_id": 7)"}) {
    EXPECT_EQ(status_of(std::string(R"({"entrypoint": "x", )") + field + "}"), 400) << field;
  }
}

TEST(LabelSelector, ReadsExpressions) {
  auto one = [](const std::string& expression) {
    return parse_label_selector({{"ray.io/zone", expression}});
  };
  EXPECT_EQ(one("a")->rules(0).values(0), "a");
  EXPECT_EQ(one("!a")->rules(0).op(), proto::LabelRule::NOT_IN);
  EXPECT_EQ(one("in(a,b)")->rules(0).values_size(), 2);
  EXPECT_EQ(one("")->rules(0).values(0), "");
  EXPECT_FALSE(one("in()"));
  EXPECT_FALSE(one("a b"));
  EXPECT_FALSE(parse_label_selector({{"-zone", "a"}}));
  EXPECT_FALSE(parse_label_selector({{"a//b", "a"}}));
}

TEST(LogFrames, HoldTenLinesOfWholeCharacters) {
  LogFrames frames;
  std::string lines;
  for (int i = 0; i < 25; ++i) lines += "line\n";
  auto out = frames.add(lines);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0], lines.substr(0, 50));
  EXPECT_EQ(out[2].size(), 25u);
  EXPECT_TRUE(frames.add("").empty());
  EXPECT_EQ(frames.add("caf\xC3").at(0), "caf");
  EXPECT_EQ(frames.add("\xA9").at(0), "\xC3\xA9");
  EXPECT_TRUE(frames.add("\xE2\x82").empty());
  EXPECT_NE(frames.rest(), "");
  EXPECT_EQ(frames.rest(), "");
  auto chars = frames.add(std::string(45'000, 'x'));
  ASSERT_EQ(chars.size(), 3u);
  EXPECT_EQ(chars[0].size(), LogFrames::kMaxChars);
}

}  // namespace
}  // namespace rt::head
