// Query parameters that several groups of routes read, the limit on simultaneous questions, and a
// cache of answers.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/http/server.h"

namespace rt::head {

// Returns a query parameter that is a whole number of at least `least`, or `otherwise` if it is
// absent. Fails with kInvalid, naming the parameter.
Result<int64_t> whole_number(const http::Call& call, const char* name, int64_t otherwise,
                             int64_t least = 0);
// Returns the parameter "timeout", given in seconds (default 30), in microseconds.
Result<int64_t> timeout_us_of(const http::Call& call);
bool is_yes(const std::string& text);

// A limit on simultaneous questions: further ones are answered with 429 at once. Copies share one
// count. Any thread may call.
class QuestionLimit {
 public:
  // `what` names in the plural what is counted; `remedy` tells how to avoid the refusal.
  QuestionLimit(int most, std::string what, std::string remedy)
      : most_(most), what_(std::move(what)), remedy_(std::move(remedy)) {}
  // The limit is RAY_STATE_SERVER_MAX_HTTP_REQUEST, or 100.
  static QuestionLimit from_environment();
  http::Handler around(http::Handler handler) const;
  // Takes a place, which is free again when the last copy of the result is gone; an answer that
  // goes on after its handler keeps a copy. Returns null if there is no place, and has answered
  // the call then.
  std::shared_ptr<void> enter(http::Call& call) const;
  // The same without an answer to the call.
  std::shared_ptr<void> enter() const;

 private:
  int most_;
  std::string what_, remedy_;
  // Shared with the handlers.
  std::shared_ptr<std::atomic<int>> now_ = std::make_shared<std::atomic<int>>(0);
};

// Repeats successful answers for two seconds to equal questions. A question with nocache=1 is
// always answered anew; RAY_DASHBOARD_NO_CACHE in the head's environment turns the cache off. Any
// thread may call.
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
