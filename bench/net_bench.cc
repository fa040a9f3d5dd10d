// Compares what common/net has of its own with what Boost.Asio has for the same: the timers of
// calls, nearly all of which are cancelled, and the small messages of a connection, alone and in
// bursts. Prints nanoseconds each; the two alternate within one run.
#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/net/asio_loop.h"
#include "common/net/poll_loop.h"
#include "common/net/timer_heap.h"

namespace rt::net {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;

constexpr int kTurns = 5;
constexpr int kTimers = 200'000, kUnderWay = 1'000;  // Calls in all, and at the same time.
constexpr int kTrips = 20'000, kBurst = 64;
constexpr size_t kMessage = 100;  // bytes
constexpr int64_t kWaitLimitUs = 1'000'000;

// Runs both `turns` times by turns and prints the best of each, per `count`.
void compare(const char* what, int count, const std::function<void()>& own,
             const std::function<void()>& with_asio) {
  int64_t best[2] = {INT64_MAX, INT64_MAX};
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int side : {0, 1}) {
      const int64_t start = steady_now_us();
      (side == 0 ? own : with_asio)();
      best[side] = std::min(best[side], steady_now_us() - start);
    }
  }
  const double own_ns = 1e3 * static_cast<double>(best[0]) / count;
  const double asio_ns = 1e3 * static_cast<double>(best[1]) / count;
  fmt::print("{:48} own {:8.0f} ns  Asio {:8.0f} ns  {:.2f} times\n", what, own_ns, asio_ns,
             asio_ns / own_ns);
}

void own_timers() {
  TimerHeap heap;
  std::vector<TimerHeap::Id> under_way(kUnderWay);
  for (int i = 0; i < kTimers; ++i) {
    TimerHeap::Id& id = under_way[static_cast<size_t>(i % kUnderWay)];
    if (i >= kUnderWay) heap.cancel(id);
    id = heap.add(10'000'000 + i, [] {});
  }
}

void asio_timers() {
  asio::io_context context;
  std::vector<asio::steady_timer> under_way;
  for (int i = 0; i < kUnderWay; ++i) under_way.emplace_back(context);
  const auto start = asio::steady_timer::clock_type::now() + std::chrono::seconds(10);
  for (int i = 0; i < kTimers; ++i) {
    asio::steady_timer& timer = under_way[static_cast<size_t>(i % kUnderWay)];
    timer.expires_at(start + std::chrono::microseconds(i));  // Cancels the one before.
    timer.async_wait([](const boost::system::error_code&) {});
    if (i % kUnderWay == 0) context.poll();  // Runs the handlers of those that were cancelled.
  }
}

// The two ends of one connection.
std::pair<int, int> pair_of_sockets() {
  int ends[2];
  RT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {ends[0], ends[1]};
}

// Sends a burst of messages, awaits as many bytes in return, and so on.
class OwnEnd final : public StreamHandler {
 public:
  // trips: how many bursts it begins; 0 for the end that sends everything back.
  OwnEnd(Loop& loop, int fd, int trips, int burst)
      : stream_(loop.adopt(fd)), trips_(trips), burst_(burst) {
    stream_->start(this);
    if (trips_ > 0) send();
  }
  MutableBytes read_buffer() override {
    return {reinterpret_cast<uint8_t*>(buffer_), sizeof(buffer_)};
  }
  void on_read(size_t n) override {
    if (trips_ == 0) return stream_->write(Bytes{reinterpret_cast<const uint8_t*>(buffer_), n});
    awaited_ -= n;
    if (awaited_ > 0) return;
    if (++done_ < trips_) return send();
    if (on_end) on_end();
  }
  void on_closed(const Error&) override {}
  bool has_ended() const { return done_ == trips_; }

  std::function<void()> on_end;

 private:
  void send() {
    awaited_ = kMessage * static_cast<size_t>(burst_);
    for (int i = 0; i < burst_; ++i) stream_->out().append(kMessage, 'x');
  }

  std::unique_ptr<Stream> stream_;
  const int trips_, burst_;
  int done_ = 0;
  size_t awaited_ = 0;
  char buffer_[16 << 10];
};

void own_trips(int trips, int burst) {
  AsioLoop loop;
  auto [near, far] = pair_of_sockets();
  OwnEnd echo(loop, far, 0, burst), caller(loop, near, trips, burst);
  caller.on_end = [&] { loop.stop(); };
  loop.run();
}

// As the thread of a driver waits, with a limit for each wait.
void own_waits(int trips) {
  PollLoop loop(PollLoop::Waiters::kOne);
  auto [near, far] = pair_of_sockets();
  OwnEnd echo(loop, far, 0, 1), caller(loop, near, trips, 1);
  loop.flush_all();
  for (PollLoop::Ready ready; !caller.has_ended();) {
    loop.wait(ready, kWaitLimitUs);
    loop.dispatch(ready);
  }
}

// The same with Asio's sockets: messages collect while a write is under way, as there.
class AsioEnd {
 public:
  AsioEnd(asio::io_context& context, int fd, int trips, int burst)
      : context_(context),
        socket_(context, asio::local::stream_protocol(), fd),
        trips_(trips),
        burst_(burst) {
    read();
    if (trips_ > 0) send();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [this](const boost::system::error_code& error, size_t n) {
                              if (error) return;
                              on_read(n);
                              read();
                            });
  }
  void on_read(size_t n) {
    if (trips_ == 0) {
      next_.append(buffer_, n);
      return flush();
    }
    awaited_ -= n;
    if (awaited_ > 0) return;
    if (++done_ == trips_) return context_.stop();
    send();
  }
  void send() {
    awaited_ = kMessage * static_cast<size_t>(burst_);
    for (int i = 0; i < burst_; ++i) next_.append(kMessage, 'x');
    flush();
  }
  void flush() {
    if (!under_way_.empty() || next_.empty()) return;
    under_way_.swap(next_);
    asio::async_write(socket_, asio::buffer(under_way_),
                      [this](const boost::system::error_code& error, size_t) {
                        if (error) return;
                        under_way_.clear();
                        flush();
                      });
  }

  asio::io_context& context_;
  Socket socket_;
  const int trips_, burst_;
  int done_ = 0;
  size_t awaited_ = 0;
  std::string next_, under_way_;
  char buffer_[16 << 10];
};

void asio_trips(int trips, int burst) {
  asio::io_context context(1);
  auto [near, far] = pair_of_sockets();
  AsioEnd echo(context, far, 0, burst), caller(context, near, trips, burst);
  context.run();
}

void asio_waits(int trips) {
  asio::io_context context(1);
  auto [near, far] = pair_of_sockets();
  AsioEnd echo(context, far, 0, 1), caller(context, near, trips, 1);
  while (!context.stopped()) context.run_one_for(std::chrono::microseconds(kWaitLimitUs));
}

}  // namespace
}  // namespace rt::net

int main() {
  using namespace rt::net;
  compare("a timer set and cancelled, 1,000 under way", kTimers, own_timers, asio_timers);
  compare(
      "a message there and back", kTrips, [] { own_trips(kTrips, 1); },
      [] { asio_trips(kTrips, 1); });
  compare(
      "the same in a thread that waits with a limit", kTrips, [] { own_waits(kTrips); },
      [] { asio_waits(kTrips); });
  compare(
      "a message of 64 there and back", kTrips, [] { own_trips(kTrips / kBurst, kBurst); },
      [] { asio_trips(kTrips / kBurst, kBurst); });
}
