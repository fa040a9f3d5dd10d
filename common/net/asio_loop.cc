#include "common/net/asio_loop.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/net/endpoints.h"
#include "common/net/socket_stream.h"
#include "common/net/timer_heap.h"

namespace rt::net {
namespace asio = boost::asio;
namespace {

// Deadlines of the far future are more nanoseconds than Boost.Asio counts. Their alarm rings early,
// finds nothing due, and is set again.
constexpr int64_t kLongestAlarmUs = 3'600'000'000;

// One watched descriptor. Shared with the pending waits.
struct Registration {
  Registration(asio::io_context& io, std::shared_ptr<Watcher> w)
      : descriptor(io), watcher(std::move(w)) {}
  asio::posix::stream_descriptor descriptor;  // Not owned: released, never closed.
  std::shared_ptr<Watcher> watcher;           // Null once the descriptor is no longer watched.
  uint32_t interest = kNoInterest;
  bool waiting_read = false;
  bool waiting_write = false;
};

}  // namespace

struct AsioLoop::Impl final : Reactor {
  explicit Impl(AsioLoop& loop)
      : owner(loop),
        link_(std::make_shared<LoopLink>(&loop)),
        io(std::make_unique<asio::io_context>(1)),
        alarm(*io) {}

  ~Impl() override {
    link_->cut();
    timers.clear();
    dirty.clear();
    auto dropped = std::move(registrations);
    registrations.clear();
    for (auto& [key, registration] : dropped) detach(*registration);
    dropped.clear();
    signals.reset();
    alarm.cancel();
  }

  // The functions from here on implement Reactor.
  Key watch(int fd, std::shared_ptr<Watcher> watcher, uint32_t interest, Trigger) override {
    auto registration = std::make_shared<Registration>(*io, std::move(watcher));
    boost::system::error_code error;
    registration->descriptor.assign(fd, error);
    if (error) {
      errno = error.value();
      return 0;
    }
    registration->interest = interest;
    Key key = next_key++;
    registrations.emplace(key, registration);
    arm(registration);
    return key;
  }
  void update(Key key, uint32_t interest) override {
    auto it = registrations.find(key);
    if (it == registrations.end()) return;
    it->second->interest = interest;
    arm(it->second);
  }
  void unwatch(Key key) override {
    auto it = registrations.find(key);
    if (it == registrations.end()) return;
    auto registration = std::move(it->second);
    registrations.erase(it);
    detach(*registration);
  }
  void flush_later(std::shared_ptr<SocketStream> stream) override {
    dirty.push_back(std::move(stream));
    if (std::exchange(flush_posted, true)) return;
    // This is posted behind the handlers of the present turn, so that whatever they write leaves
    // together.
    asio::post(*io, [this] { flush_all(); });
  }
  Loop& loop() override { return owner; }
  std::shared_ptr<LoopLink> link() override { return link_; }

  static void detach(Registration& registration) {
    registration.interest = kNoInterest;
    registration.descriptor.release();  // This cancels the waits.
    registration.watcher.reset();
  }

  void arm(const std::shared_ptr<Registration>& registration) {
    wait(registration, kRead, asio::posix::descriptor_base::wait_read, registration->waiting_read);
    wait(registration, kWrite, asio::posix::descriptor_base::wait_write,
         registration->waiting_write);
  }

  // A new wait checks the state of the descriptor, so nothing that arrived before it is missed.
  void wait(const std::shared_ptr<Registration>& registration, Interest what,
            asio::posix::descriptor_base::wait_type type, bool& waiting) {
    if ((registration->interest & what) == 0 || waiting) return;
    waiting = true;
    registration->descriptor.async_wait(
        type, [this, registration, what](const boost::system::error_code&) {
          (what == kRead ? registration->waiting_read : registration->waiting_write) = false;
          if ((registration->interest & what) == 0) return;  // The interest changed meanwhile.
          auto watcher = registration->watcher;
          watcher->on_ready(what);
          arm(registration);
        });
  }

  void flush_all() {
    flush_posted = false;
    flushing.swap(dirty);
    for (auto& stream : flushing) stream->turn_flush();
    flushing.clear();
  }

  void set_alarm() {
    int64_t next = timers.next_deadline_us();
    if (next == TimerHeap::kNever || next >= alarm_us) return;
    alarm_us = next;
    alarm.expires_after(
        std::chrono::microseconds(std::clamp<int64_t>(next - steady_now_us(), 0, kLongestAlarmUs)));
    alarm.async_wait([this, next](const boost::system::error_code& error) {
      if (error || alarm_us != next) return;  // An earlier deadline has replaced this one.
      alarm_us = TimerHeap::kNever;
      timers.fire_due(steady_now_us());
      set_alarm();
    });
  }

  void await_signal() {
    signals->async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      on_signal(signal);
      await_signal();
    });
  }

  AsioLoop& owner;
  std::shared_ptr<LoopLink> link_;
  TimerHeap timers;
  int64_t alarm_us = TimerHeap::kNever;  // The deadline to which `alarm` is set.
  std::unordered_map<Key, std::shared_ptr<Registration>> registrations;
  Key next_key = 1;
  std::vector<std::shared_ptr<SocketStream>> dirty, flushing;
  bool flush_posted = false;
  std::function<void(int)> on_signal;
  // Declared after the members above, so that handlers destroyed with the io_context may still
  // unwatch.
  std::unique_ptr<asio::io_context> io;
  asio::steady_timer alarm;
  std::unique_ptr<asio::signal_set> signals;
};

AsioLoop::AsioLoop() : impl_(std::make_unique<Impl>(*this)) {}
AsioLoop::~AsioLoop() = default;

void AsioLoop::run() {
  auto work = asio::make_work_guard(*impl_->io);
  impl_->io->run();
  impl_->io->restart();  // This allows another run(); a stop() before run() still counts.
}

void AsioLoop::stop() { impl_->io->stop(); }

void AsioLoop::on_signals(std::initializer_list<int> signals, std::function<void(int)> handler) {
  impl_->on_signal = std::move(handler);
  impl_->signals = std::make_unique<asio::signal_set>(*impl_->io);
  for (int signal : signals) impl_->signals->add(signal);
  impl_->await_signal();
}

int64_t AsioLoop::now_us() const { return steady_now_us(); }

Loop::TimerId AsioLoop::run_after(int64_t delay_us, Task task) {
  TimerId id = impl_->timers.add(steady_now_us() + std::max<int64_t>(0, delay_us), std::move(task));
  impl_->set_alarm();
  return id;
}

void AsioLoop::cancel(TimerId id) { impl_->timers.cancel(id); }
void AsioLoop::post(Task task) { asio::post(*impl_->io, std::move(task)); }

void AsioLoop::connect(const Address& address, int64_t timeout_us,
                       std::function<void(Result<std::unique_ptr<Stream>>)> done) {
  start_connect(*impl_, address, timeout_us, std::move(done));
}

Result<std::unique_ptr<Listener>> AsioLoop::listen(const Address& address,
                                                   std::function<void(int fd)> accept) {
  return make_listener(*impl_, address, std::move(accept));
}

Result<std::unique_ptr<Listener>> AsioLoop::listen_fd(int listening_fd,
                                                      std::function<void(int fd)> accept) {
  return make_listener(*impl_, listening_fd, std::move(accept));
}

std::unique_ptr<Stream> AsioLoop::adopt(int fd) { return make_stream(*impl_, fd); }

std::unique_ptr<FdWatch> AsioLoop::watch_readable(int fd, Task on_readable) {
  return make_fd_watch(*impl_, fd, std::move(on_readable));
}

}  // namespace rt::net
