#include "daemons/head/http/query.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/mutex.h"
#include "daemons/head/http/envelope.h"

namespace rt::head {
namespace {

constexpr int kMostQuestions = 100;
constexpr int64_t kMaxTimeoutS = 24 * 3600;
constexpr char kMostVariable[] = "RAY_STATE_SERVER_MAX_HTTP_REQUEST";

}  // namespace

Result<int64_t> whole_number(const http::Call& call, const char* name, int64_t otherwise,
                             int64_t least) {
  std::string text = call.query(name);
  if (text.empty()) return otherwise;
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
  return make_error(
      Code::kInvalid,
      fmt::format("{} is '{}', but must be a whole number, {} or more", name, text, least));
}

Result<int64_t> timeout_us_of(const http::Call& call) {
  RT_ASSIGN(int64_t seconds, whole_number(call, "timeout", 30));
  return std::min(seconds, kMaxTimeoutS) * 1'000'000;
}

bool is_yes(const std::string& text) { return text == "1" || text == "true" || text == "True"; }

QuestionLimit QuestionLimit::from_environment() {
  std::string text = environment(kMostVariable);
  int most = std::atoi(text.c_str());
  return QuestionLimit(
      most > 0 ? most : kMostQuestions, "questions",
      fmt::format(", or start the head with {} set to a larger number", kMostVariable));
}

http::Handler QuestionLimit::around(http::Handler handler) const {
  return [handler = std::move(handler), limit = *this](http::Call& call) {
    if (auto place = limit.enter(call)) handler(call);
  };
}

std::shared_ptr<void> QuestionLimit::enter(http::Call& call) const {
  auto place = enter();
  if (!place)
    fail(call, 429,
         fmt::format("the limit of {} simultaneous {} is reached: try again later{}", most_, what_,
                     remedy_));
  return place;
}

std::shared_ptr<void> QuestionLimit::enter() const {
  struct Place {
    explicit Place(std::shared_ptr<std::atomic<int>> counted)
        : now(std::move(counted)), before((*now)++) {}
    ~Place() { --*now; }
    Place(const Place&) = delete;
    std::shared_ptr<std::atomic<int>> now;
    int before;
  };
  auto place = std::make_shared<Place>(now_);
  return place->before < most_ ? place : nullptr;
}

struct AnswerCache::Kept {
  struct Answer {
    int64_t until_us = 0;
    std::string body, type;
  };
  Mutex mutex;
  std::map<std::string, Answer> answers GUARDED_BY(mutex);  // by target
};

std::shared_ptr<AnswerCache::Kept> AnswerCache::make() { return std::make_shared<Kept>(); }

http::Handler AnswerCache::around(http::Handler handler) const {
  constexpr int64_t kKeptUs = 2'000'000;
  if (!environment("RAY_DASHBOARD_NO_CACHE").empty()) return handler;
  return [handler = std::move(handler), kept = kept_](http::Call& call) {
    const std::string& target = call.request.target;
    const int64_t now_us = steady_now_us();
    if (call.query("nocache") == "1") return handler(call);
    {
      MutexLock lock(kept->mutex);
      std::erase_if(kept->answers,
                    [now_us](const auto& entry) { return entry.second.until_us <= now_us; });
      if (auto known = kept->answers.find(target); known != kept->answers.end()) {
        call.response.status = 200;
        return call.response.set_content(known->second.body, known->second.type);
      }
    }
    handler(call);
    if (call.response.status != 200) return;
    MutexLock lock(kept->mutex);
    if (kept->answers.size() < kMostAnswers)
      kept->answers[target] = {steady_now_us() + kKeptUs, call.response.body,
                               call.response.get_header_value("Content-Type")};
  };
}

}  // namespace rt::head
