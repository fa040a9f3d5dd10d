#include "cli/train/train_profiles_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "cli/terminal/output.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

using state::Json;

constexpr int64_t kNsInMs = 1'000'000;

// The elements of a field that are objects; none if the field is no list.
std::vector<Json> objects_of(const Json& object, const char* name) {
  std::vector<Json> found;
  auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return found;
  std::copy_if(list->begin(), list->end(), std::back_inserter(found),
               [](const Json& one) { return one.is_object(); });
  return found;
}

std::string printed(const Json& row, const char* name) { return printable(text_of(row, name)); }

// "2", or "1 of 2" if one was not recorded.
std::string ranks_text(const Json& profile) {
  const auto ranks = objects_of(profile, "ranks");
  if (ranks.empty()) return "";
  const auto recorded = std::count_if(ranks.begin(), ranks.end(), [](const Json& rank) {
    return text_of(rank, "status") == "RECORDED";
  });
  return static_cast<size_t>(recorded) == ranks.size()
             ? std::to_string(recorded)
             : fmt::format("{} of {}", recorded, ranks.size());
}

}  // namespace

std::string train_profile_text(const Json& answer) {
  // The summary is a text of several lines.
  std::string text = printable(text_of(answer, "summary"), true);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += fmt::format("\nThe traces of the ranks are in {}\n", printed(answer, "path"));
  if (const std::string trace = printed(answer, "trace"); !trace.empty())
    text += fmt::format(
        "All ranks in one trace: {}\nOpen it at https://ui.perfetto.dev, or each "
        "rank's in TensorBoard: rayctl train tensorboard\n",
        trace);
  return text;
}

std::string train_profiles_text(const Json& profiles) {
  auto all = objects_of(profiles, "profiles");
  std::string text;
  if (!all.empty()) {
    std::reverse(all.begin(), all.end());
    std::vector<Words> rows = {{"PROFILE", "STATUS", "RECORDED", "STEPS", "RANKS", "FOLDER"}};
    for (const Json& one : all)
      rows.push_back({printed(one, "id"), printed(one, "status"),
                      local_time(number_of(one, "time_ns") / kNsInMs),
                      std::to_string(number_of(one, "steps")), ranks_text(one),
                      printed(one, "path")});
    text += "\nProfiles:\n" + table(rows);
    for (const Json& one : all) {
      if (const std::string detail = printed(one, "detail"); !detail.empty())
        text += fmt::format("{}: {}\n", printed(one, "id"), detail);
    }
  }
  auto viewer = profiles.find("tensorboard");
  if (viewer != profiles.end() && viewer->is_object())
    text += fmt::format("TensorBoard: {}\n", printed(*viewer, "url"));
  return text;
}

}  // namespace rt::cli
