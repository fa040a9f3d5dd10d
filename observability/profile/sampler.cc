#include "observability/profile/sampler.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "observability/profile/capture.h"
#include "observability/profile/stack_table.h"
#include "observability/profile/threads.h"

namespace rt::profile {
namespace {

constexpr int64_t kListThreadsEveryUs = 100'000;
// How long to wait for stacks after the last look: on a busy machine threads run late.
constexpr int64_t kAnswerWithinUs = 1'000'000;
constexpr int64_t kStopCheckUs = 100'000;
using Request = proto::ProfileRequest;

// The state of one sampled thread.
struct Thread {
  explicit Thread(pid_t id) : tid(id), files(id) {}
  pid_t tid;
  ThreadFiles files;
  uint32_t index = 0;
  bool is_of_runtime = false;  // Such threads never take signals (common/base/thread.h).
  bool takes_no_signals = false;
  // Whether the program's thread could not be asked at the last look: it ran and took no signals.
  bool unasked = false;
  bool answered = false;  // Whether any stack of it was taken.
  ThreadPosition last;
  bool just_asked = false;     // Whether it may have run since then only to handle the signal.
  Capture* pending = nullptr;  // The slot that it has been asked to fill.
  int64_t owed_on = 0, owed_off = 0;  // The looks that will count for the pending stack.
  int64_t stack = -1;  // The number of its current stack in the table; -1 if not known.
};

// One profile. Used by a single thread.

class Sampler {
 public:
  Sampler(Captures& captures, const Request& request, bool native)
      : captures_(captures), request_(request) {
    if (const Language* known = language()) symbols_ = known->symbols();
    if (native || !symbols_) open_unwinder();
    table_ = std::make_unique<StackTable>(symbols_.get(), unwinder_.get());
  }
  ~Sampler() {
    for (auto& thread : threads_) drop(*thread);
    captures_.trim();
  }

  bool sees_anything() const { return unwinder_ || symbols_; }
  const std::string& note() const { return note_; }

  void look(int64_t collect_until_us) {
    ++looks_;
    if (int64_t now = steady_now_us(); now >= list_at_us_) {
      list();
      list_at_us_ = now + kListThreadsEveryUs;
    }
    captures_.wait_for_any(0);
    for (auto& thread : threads_) examine(*thread, collect_until_us);
    std::erase_if(threads_, [](const auto& thread) { return thread->tid == 0; });
    collect(collect_until_us);
  }

  // To be called after a look that is the only one: asks the threads that could not be asked.
  void insist(int64_t until_us) {
    while (std::any_of(threads_.begin(), threads_.end(), [](auto& t) { return t->unasked; }) &&
           steady_now_us() < until_us) {
      constexpr timespec kPause{0, 1'000'000};
      nanosleep(&kPause, nullptr);
      for (auto& thread : threads_)
        if (thread->unasked) examine(*thread, until_us);
      std::erase_if(threads_, [](const auto& thread) { return thread->tid == 0; });
      collect(until_us);
    }
  }

  void missed(int64_t looks) { missed_ += looks; }

  // To be called after the last look: waits for stacks that have not arrived yet.
  void settle() { collect(steady_now_us() + kAnswerWithinUs); }

  proto::StackSamples finish() {
    proto::StackSamples out;
    size_t silent = 0, unasked = 0;
    for (auto& thread : threads_) {
      silent += thread->pending != nullptr;
      unasked += thread->unasked && !thread->answered;
    }
    auto threads = [](size_t count) {
      return count == 1 ? "1 thread" : fmt::format("{} threads", count);
    };
    if (silent > 0)
      out.add_notes(fmt::format(
          "{} did not answer: waiting in the kernel for a device, stopped, or without a processor",
          threads(silent)));
    if (unasked > 0)
      out.add_notes(
          fmt::format("{} blocked signals while running, which hides the stack", threads(unasked)));
    if (!note_.empty()) out.add_notes(note_);
    if (table_->full())
      out.add_notes(fmt::format("more than {} different stacks: the later ones are counted as one",
                                kMaxStacks));
    out.set_pid(getpid());
    out.set_looks(looks_);
    out.set_missed(missed_);
    const Language* known = language();
    if (known) out.set_runtime(known->name);
    table_->write(known && unwinder_ ? known->evaluator : nullptr, &out);
    for (auto& named : names_) *out.add_threads() = std::move(named);
    return out;
  }

 private:
  void open_unwinder() {
    auto opened = Unwinder::open();
    if (opened) {
      unwinder_ = std::move(*opened);
    } else {
      note_ = opened.error().message;
    }
  }

  void list() {
    const auto self = static_cast<pid_t>(syscall(SYS_gettid));
    for (pid_t tid : list_threads(self)) {
      auto known = std::find_if(threads_.begin(), threads_.end(),
                                [&](const auto& thread) { return thread->tid == tid; });
      if (known != threads_.end()) continue;
      auto thread = std::make_unique<Thread>(tid);
      thread->index = static_cast<uint32_t>(names_.size());
      note_signal_mask(*thread);
      names_.emplace_back().set_tid(tid);
      names_.back().set_name(name_of(*thread));
      thread->is_of_runtime = tid != getpid() && names_.back().name().starts_with("ray-");
      threads_.push_back(std::move(thread));
    }
  }

  static void note_signal_mask(Thread& thread) {
    thread.takes_no_signals = thread.files.blocks(Captures::signal_number());
  }

  // Workers set their process title, such as "ray::IDLE", as the kernel's name of the main thread,
  // and threads without a name of their own inherit it.
  static std::string name_of(const Thread& thread) {
    std::string name = thread.files.name();
    if (!name.starts_with("ray::")) return name;
    return thread.tid == getpid() ? "MainThread" : "";
  }

  bool wanted(bool on_cpu) const {
    return request_.mode() == Request::WALL || on_cpu == (request_.mode() == Request::CPU);
  }

  void drop(Thread& thread) {
    if (thread.pending) captures_.release(std::exchange(thread.pending, nullptr));
    thread.tid = 0;
  }

  void examine(Thread& thread, int64_t collect_until_us) {
    thread.unasked = false;
    if (thread.pending) {
      ++(thread.last.running ? thread.owed_on : thread.owed_off);
      return;
    }
    switch (thread.files.ran()) {
      case ThreadFiles::Ran::kGone: return drop(thread);
      case ThreadFiles::Ran::kNo:
        if (thread.stack >= 0) return count_asleep(thread);
        break;
      case ThreadFiles::Ran::kYes: break;
    }
    ThreadPosition now;
    if (!thread.files.where(&now)) return drop(thread);
    bool unmoved = !now.running && thread.stack >= 0 && thread.just_asked && now == thread.last;
    thread.just_asked = false;
    if (unmoved) return count_asleep(thread);
    thread.last = now;
    thread.stack = -1;
    if (wanted(now.running)) ask(thread, collect_until_us);
  }

  void count_asleep(Thread& thread) {
    if (wanted(false)) table_->count(static_cast<size_t>(thread.stack), false, 1);
  }

  void ask(Thread& thread, int64_t collect_until_us) {
    // Every thread blocks signals for moments: when it starts, around a fork, and in the handler
    // that has filled a slot, where the thread may stand for long if it gets no processor.
    if (thread.takes_no_signals && !thread.is_of_runtime) note_signal_mask(thread);
    // The stack of such a thread can only be read from outside, and only while the thread sleeps.
    if (thread.takes_no_signals && thread.last.running) {
      thread.unasked = !thread.is_of_runtime;
      return;
    }
    Capture* slot = captures_.acquire(thread.tid, unwinder_ != nullptr);
    if (!slot) {
      collect(collect_until_us);
      slot = captures_.acquire(thread.tid, unwinder_ != nullptr);
    }
    if (!slot) return missed(1);
    thread.pending = slot;
    thread.owed_on = thread.last.running ? 1 : 0;
    thread.owed_off = thread.last.running ? 0 : 1;
    if (thread.takes_no_signals) {
      captures_.fill_from_outside(slot, thread.last.sp, thread.last.pc);
    } else if (!captures_.request(slot, thread.tid)) {
      drop(thread);
    }
  }

  // Takes the stacks that arrive until `until_us` (steady clock); later ones are left for the next
  // look.
  void collect(int64_t until_us) {
    for (;;) {
      bool waiting = false;
      for (auto& thread : threads_) {
        if (!thread->pending) continue;
        if (thread->pending->state.load() == Capture::kFull) {
          take(*thread);
        } else {
          waiting = true;
        }
      }
      int64_t left = until_us - steady_now_us();
      if (!waiting || left <= 0) return;
      captures_.wait_for_any(left);
    }
  }

  void take(Thread& thread) {
    thread.stack = static_cast<int64_t>(table_->add(thread.index, *thread.pending));
    captures_.release(std::exchange(thread.pending, nullptr));
    thread.just_asked = thread.answered = true;
    if (wanted(true)) table_->count(static_cast<size_t>(thread.stack), true, thread.owed_on);
    if (wanted(false)) table_->count(static_cast<size_t>(thread.stack), false, thread.owed_off);
  }

  Captures& captures_;
  const Request& request_;
  std::unique_ptr<LanguageSymbols> symbols_;
  std::unique_ptr<Unwinder> unwinder_;
  std::unique_ptr<StackTable> table_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<proto::SampledThread> names_;
  std::string note_;
  int64_t list_at_us_ = 0, looks_ = 0, missed_ = 0;
};

Mutex g_one_at_a_time;

Error another_under_way() {
  return make_error(
      Code::kResourceExhausted,
      fmt::format("another profile of process {} is under way: try again when it has ended",
                  getpid()));
}

void sleep_until(int64_t at_us, const std::atomic<bool>& stop) {
  for (int64_t left = at_us - steady_now_us(); left > 0 && !stop; left = at_us - steady_now_us()) {
    int64_t piece = std::min(left, kStopCheckUs);
    timespec pause{piece / 1'000'000, piece % 1'000'000 * 1000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Result<proto::StackSamples> take_stacks(bool native) {
  if (!g_one_at_a_time.try_lock()) return another_under_way();
  MutexLock lock(g_one_at_a_time, std::adopt_lock);
  RT_ASSIGN(Captures * captures, Captures::get());
  Request request;
  Sampler sampler(*captures, request, native);
  if (!sampler.sees_anything()) return make_error(Code::kUnsupported, sampler.note());
  const int64_t until_us = steady_now_us() + kAnswerWithinUs;
  sampler.look(until_us);
  sampler.insist(until_us);
  return sampler.finish();
}

Result<proto::StackSamples> take_profile(const Request& request, const std::atomic<bool>& stop) {
  if (request.duration_ms() < 1 || request.duration_ms() > kMaxDurationMs)
    return make_error(Code::kInvalid, fmt::format("the length of a profile is 1 ms to {} s",
                                                  kMaxDurationMs / 1000));
  if (request.hz() < 1 || request.hz() > kMaxHz)
    return make_error(
        Code::kInvalid,
        fmt::format("a profile takes 1 to {} samples a second, not {}", kMaxHz, request.hz()));
  if (!g_one_at_a_time.try_lock()) return another_under_way();
  MutexLock lock(g_one_at_a_time, std::adopt_lock);
  RT_ASSIGN(Captures * captures, Captures::get());
  Sampler sampler(*captures, request, request.native());
  if (!sampler.sees_anything()) return make_error(Code::kUnsupported, sampler.note());
  const int64_t period = 1'000'000 / request.hz(),
                end = steady_now_us() + request.duration_ms() * 1000;
  for (int64_t next = steady_now_us(); next < end && !stop;) {
    sampler.look(next + period / 2);
    next += period;
    if (int64_t late = (steady_now_us() - next) / period; late > 0) {
      sampler.missed(late);
      next += late * period;
    }
    sleep_until(std::min(next, end), stop);
  }
  if (!stop) sampler.settle();
  proto::StackSamples samples = sampler.finish();
  samples.set_period_us(period);
  return samples;
}

}  // namespace rt::profile
