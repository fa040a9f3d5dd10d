// `rayctl status`: nodes, usage, and what waits for resources, once or refreshed in place.
#include <fmt/core.h>

#include <optional>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/output.h"
#include "cli/terminal/print.h"
#include "cli/terminal/screen.h"
#include "observability/state/status_text.h"

namespace rt::cli {
namespace {

// The pages of --watch, over one connection. When the head has been lost, next() returns an error,
// and the next call connects again.
class StatusPages {
 public:
  explicit StatusPages(const CommandLine& line) : line_(line) {}

  Result<std::string> next() {
    if (!head_ || !head_->client->connection()->is_open()) {
      RT_ASSIGN(Head head, connect_head(line_.get("address")));
      head_ = std::move(head);
    }
    RT_ASSIGN(auto status, head_->client->call(&proto::HeadService::Stub::GetClusterStatus,
                                               proto::Empty(), kAnswerUs));
    return line_.for_programs() ? data_text(line_, state::status_json(status))
                                : state::status_text(status, line_.has("verbose"));
  }

 private:
  static constexpr int64_t kAnswerUs = 30'000'000;
  const CommandLine& line_;
  std::optional<Head> head_;
};

Status show_status_page(const CommandLine& line) {
  RT_ASSIGN(std::string page, StatusPages(line).next());
  write_output(page);
  return {};
}

}  // namespace

int run_status(const Words& words) {
  CommandLine line("status",
                   "Shows nodes, resource usage, what waits for resources, and recent failures.");
  line.address_option()
      .format_option()
      .flag("verbose,v", "also usage per node")
      .flag("watch,w", "again and again, in place, until q");
  declare_refresh(line);
  if (auto code = line.parse(words)) return *code;
  auto how = refresh_of(line);
  if (!how) return usage_error("status", how.error().message);
  if (!line.has("watch")) {
    if (line.has("interval") || line.has("iterations"))
      return usage_error("status", "--interval and --iterations need --watch");
    return finish(show_status_page(line));
  }
  StatusPages pages(line);
  return finish(refresh(*how, [&] { return pages.next(); }));
}

}  // namespace rt::cli
