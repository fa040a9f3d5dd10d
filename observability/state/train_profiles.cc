#include "observability/state/train_profiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/base/clock.h"
#include "common/base/json_text.h"
#include "common/base/utf8.h"
#include "common/proto/command.pb.h"
#include "observability/state/lookups.h"
#include "observability/state/sources.h"
#include "observability/state/train_runs.h"

namespace rt::state {
namespace {

constexpr char kCommand[] = "train_profile";
// The controller uses this time if the request does not say otherwise.
constexpr double kStepTimeoutS = 120;
constexpr double kSteps = 3;
// The steps before those that are recorded, and the one that ends them.
constexpr double kFurtherSteps = 4;
// The time for gathering and merging the traces of all ranks.
constexpr double kGatherS = 900;
constexpr double kLongestS = 7 * 24 * 3600;

Result<Sources::Place> controller_of(Sources& sources, const Json& run) {
  const std::string name = printable(text_of(run, "name"));
  RT_ASSIGN(auto found, actor_info(sources, text_of(run, "controller_actor_id")));
  if (!found.found() || found.actor().state() == proto::ACTOR_DEAD)
    return make_error(Code::kUnavailable,
                      fmt::format("the controller of run {} has ended, and with it the run", name));
  const proto::WorkerAddress& address = found.actor().address();
  if (found.actor().state() != proto::ACTOR_ALIVE || address.worker_id().empty())
    return make_error(
        Code::kUnavailable,
        fmt::format("the controller of run {} does not run yet: try again when it does", name));
  return Sources::Place{target_of(address), fmt::format("the controller of run {} (on {})", name,
                                                        printable(address.ip()))};
}

// Translates the error of a request into one that says what a user can do.
Error explained(const Error& error, const std::string& name) {
  if (error.code == Code::kNotFound)
    return make_error(Code::kUnavailable,
                      fmt::format("run {} takes no profiles now: its controller is just starting "
                                  "or ending; try again while the run is RUNNING",
                                  name));
  if (error.code == Code::kUnavailable)
    return make_error(error.code,
                      fmt::format("the controller of run {} ended during the profile ({}): "
                                  "`rayctl train show {}` says what became of the run",
                                  name, error.message, name));
  return error;
}

}  // namespace

std::string viewer_text(const Viewer& viewer) {
  return json_text(Json{{"url", viewer.url}, {"owner", viewer.owner}, {"time_ms", viewer.time_ms}});
}

Json living_viewer(const std::string& text, int64_t now_ms) {
  Json viewer = parse_ordered_json(text);
  if (!viewer.is_object() || !has_text(viewer, "url") || !has_text(viewer, "owner")) return {};
  const std::string url = viewer["url"];
  if (!url.starts_with("http://") && !url.starts_with("https://")) return {};
  // A clock that is ahead makes a viewer look younger than it is, but not forever.
  const double age_ms = static_cast<double>(now_ms) - double_of(viewer, "time_ms", 0);
  return std::abs(age_ms) <= static_cast<double>(kViewerGoneMs) ? viewer : Json();
}

Json parse_profiles(const std::string& text) {
  Json profiles = parse_ordered_json(text);
  Json good = Json::array();
  if (!profiles.is_array()) return good;
  for (Json& one : profiles) {
    if (one.is_object() && has_text(one, "id") && has_text(one, "status"))
      good.push_back(std::move(one));
  }
  return good;
}

int64_t longest_profile_us(const Json& request) {
  const double steps = double_of(request, "steps", kSteps),
               step_s = double_of(request, "timeout_s", kStepTimeoutS);
  const double all_s = std::clamp((steps + kFurtherSteps) * step_s + kGatherS, kGatherS, kLongestS);
  return static_cast<int64_t>(all_s * 1e6);
}

Result<Answer> train_profiles(const Cluster& cluster, const std::string& run_id,
                              int64_t timeout_us) {
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  RT_ASSIGN(auto profiles, kv_value(*sources, kTrainProfiles, run_id));
  RT_ASSIGN(auto viewer, kv_value(*sources, kTrainViewers, run_id));
  if (!profiles) {
    RT_ASSIGN(auto run, kv_value(*sources, kTrainRuns, run_id));
    if (!run) return make_error(Code::kNotFound, "there is no record of training run " + run_id);
  }
  Json answer = Json::object();
  answer["profiles"] = parse_profiles(profiles.value_or(""));
  answer["tensorboard"] = living_viewer(viewer.value_or(""), wall_now_us() / 1000);
  return Answer{std::move(answer)};
}

Result<Answer> profile_train_run(const Cluster& cluster, const Json& run, Json request,
                                 int64_t timeout_us) {
  const std::string name = printable(text_of(run, "name"));
  if (!is_under_way(run))
    return make_error(Code::kInvalid,
                      fmt::format("run {} has ended ({}): only a run that is under way can be "
                                  "profiled; RunConfig(profile=True) profiles the first steps of "
                                  "the next one",
                                  name, text_of(run, "status")));
  RT_ASSIGN(auto sources,
            Sources::connect(cluster.head_address, cluster.token, timeout_us, cluster.connect_us));
  RT_ASSIGN(auto place, controller_of(*sources, run));
  sources->allow(longest_profile_us(request));
  request["run_id"] = text_of(run, "id");
  proto::ProcessCommand command;
  command.set_name(kCommand);
  command.set_json(json_text(request));
  auto reply = sources->ask_one(place, &proto::CommandService::Stub::Execute, command);
  if (!reply) return explained(reply.error(), name);
  Json answer = parse_ordered_json(reply->json());
  if (!answer.is_object())
    return make_error(Code::kProtocol,
                      fmt::format("the answer of the controller of run {} cannot be read", name));
  return Answer{std::move(answer)};
}

}  // namespace rt::state
