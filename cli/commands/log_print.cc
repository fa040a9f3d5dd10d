#include "cli/commands/log_print.h"

#include <thread>

#include "cli/client/head_wait.h"
#include "cli/terminal/print.h"
#include "observability/state/over_http.h"

namespace rt::cli {
namespace {

// Follows a log over HTTP by asking for one piece after the other, which survives a restart of the
// head. Falls back to one streaming request if the server cannot hand out pieces.
Status follow_log_over_http(const state::Cluster& cluster, const state::LogQuery& query,
                            const state::TakeLog& take) {
  state::HttpLogFollowing log(cluster, query);
  HeadWait wait(cluster.head_address);
  for (bool begun = false;;) {
    auto piece = log.next();
    if (!piece && !begun)
      return piece.error().code == Code::kUnsupported
                 ? state::read_log_over_http(cluster, query, take)
                 : Status(piece.error());
    if (!piece) {
      RT_TRY(wait.lost(piece.error()));
    } else {
      begun = true;
      wait.found();
      if (!piece->empty()) {
        if (!take(*piece)) return {};
        continue;
      }
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(wait.waiting() ? HeadWait::kPauseUs : query.interval_us));
  }
}

}  // namespace

Status pass_log(const state::Cluster& cluster, const state::LogQuery& query,
                const state::TakeLog& take) {
  if (!state::is_http(cluster.head_address)) {
    auto wait = [](int64_t us) {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      return true;
    };
    return state::read_log(cluster, query, take, wait);
  }
  return query.follow ? follow_log_over_http(cluster, query, take)
                      : state::read_log_over_http(cluster, query, take);
}

Status print_log(const state::Cluster& cluster, const state::LogQuery& query) {
  Status printed;
  RT_TRY(pass_log(cluster, query, [&](std::string_view piece) {
    write_output(piece);
    printed = flush_output();
    return static_cast<bool>(printed);
  }));
  return printed;
}

}  // namespace rt::cli
