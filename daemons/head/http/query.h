// What several groups of routes read from a question, and how many questions are answered at once.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/http/server.h"

namespace rt::head {

// A query parameter that is a whole number from `least` on; kInvalid names it.
Result<int64_t> whole_number(const http::Call& call, const char* name, int64_t otherwise,
                             int64_t least = 0);
// "timeout", in seconds: 30 unless said otherwise.
Result<int64_t> timeout_us_of(const http::Call& call);
bool is_yes(const std::string& text);

// Questions to the whole cluster that are under way: beyond the limit the answer is 429, at once.
// Copies count together.
class InFlight {
 public:
  // `what`: what is counted, in the plural; `remedy` ends the refusal.
  InFlight(int most, std::string what, std::string remedy)
      : most_(most), what_(std::move(what)), remedy_(std::move(remedy)) {}
  // RAY_STATE_SERVER_MAX_HTTP_REQUEST, or 100.
  static InFlight from_environment();
  http::Handler around(http::Handler handler) const;
  // A place among them until the last copy of it is gone: for an answer that goes on after its
  // handler. Null: there was none, and the call is answered.
  std::shared_ptr<void> enter(http::Call& call) const;
  std::shared_ptr<void> enter() const;  // without an answer

 private:
  int most_;
  std::string what_, remedy_;
  std::shared_ptr<std::atomic<int>> now_ =
      std::make_shared<std::atomic<int>>(0);  // shared with the handlers
};

// Good answers that are given again for two seconds to whoever asks the same, unless the question
// says nocache=1 or the head has RAY_DASHBOARD_NO_CACHE.
class AnswerCache {
 public:
  http::Handler around(http::Handler handler) const;

 private:
  struct Kept;
  static constexpr size_t kMostAnswers = 64;
  std::shared_ptr<Kept> kept_ = make();  // shared with the handlers
  static std::shared_ptr<Kept> make();
};

}  // namespace rt::head
