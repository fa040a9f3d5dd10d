#include "common/net/poll_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/endpoints.h"
#include "common/net/socket_stream.h"
#include "common/net/sockets.h"
#include "common/net/timer_heap.h"

namespace rt::net {
namespace {

// Generations of slots begin at 1, so that the tokens of slots are at least 2^32.
constexpr uint64_t kWakeToken = 0, kAlarmToken = 1;

struct Slot {
  uint32_t generation = 1;
  int fd = -1;
  uint32_t trigger = 0;
  std::shared_ptr<Watcher> watcher;  // Shared with its user's handle; null when the slot is free.
};

uint32_t epoll_events(uint32_t interest) {
  return (interest & kRead ? EPOLLIN | EPOLLRDHUP : 0u) | (interest & kWrite ? EPOLLOUT : 0u);
}

// epoll_wait() with a limit in microseconds; in milliseconds where the kernel has no
// epoll_pwait2().
int wait_events(int epoll_fd, epoll_event* events, int max, int64_t timeout_us) {
  if (timeout_us <= 0) return ::epoll_wait(epoll_fd, events, max, timeout_us == 0 ? 0 : -1);
  static std::atomic<bool> has_pwait2{true};
  if (has_pwait2.load(std::memory_order_relaxed)) {
    timespec limit{timeout_us / 1'000'000, static_cast<long>(timeout_us % 1'000'000) * 1000};
    int n = ::epoll_pwait2(epoll_fd, events, max, &limit, nullptr);
    if (n >= 0 || errno != ENOSYS) return n;
    has_pwait2 = false;
  }
  return ::epoll_wait(epoll_fd, events, max,
                      static_cast<int>(std::min<int64_t>((timeout_us + 999) / 1000, INT32_MAX)));
}

}  // namespace

// wait() runs without the owner's mutex. It uses the descriptors, the atomics, and alarm_us, which
// belongs to the one waiting thread. The owner's mutex guards everything else.
//
// Streams are edge-triggered, so that an arrival wakes only one of several waiting threads. The
// eventfd and the timerfd are edge-triggered as well, and therefore never need to be read.
struct PollLoop::Impl final : Reactor {
  Impl(PollLoop& loop, Waiters most)
      : owner(loop),
        epoll_fd(::epoll_create1(EPOLL_CLOEXEC)),
        alarm_fd(most == Waiters::kOne
                     ? ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)
                     : -1),
        link_(std::make_shared<LoopLink>(&loop)) {
    RT_CHECK(epoll_fd.valid() && waker->event_fd.valid() &&
             alarm_fd.valid() == (most == Waiters::kOne));
    add_own(waker->event_fd, kWakeToken);
    if (alarm_fd.valid()) add_own(alarm_fd, kAlarmToken);
  }

  void add_own(const Fd& fd, uint64_t token) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = token;
    RT_CHECK(::epoll_ctl(epoll_fd.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0);
  }

  ~Impl() override {
    link_->cut();
    auto tasks = std::move(posted);  // The destruction of tasks may still call unwatch().
    posted.clear();
    tasks.clear();
    timers.clear();
    dirty.clear();
    for (size_t i = 0; i < slots.size(); ++i) auto dropped = std::move(slots[i].watcher);
  }

  // The functions from here on implement Reactor.
  Key watch(int fd, std::shared_ptr<Watcher> watcher, uint32_t interest, Trigger trigger) override {
    uint32_t index;
    if (free_slots.empty()) {
      index = static_cast<uint32_t>(slots.size());
      slots.emplace_back();
    } else {
      index = free_slots.back();
      free_slots.pop_back();
    }
    Slot& slot = slots[index];
    slot.fd = fd;
    slot.trigger = trigger == Trigger::kEdge ? uint32_t{EPOLLET} : 0;
    Key key = (Key{slot.generation} << 32) | index;
    if (!control(EPOLL_CTL_ADD, slot, key, interest)) {
      free_slots.push_back(index);
      return 0;
    }
    slot.watcher = std::move(watcher);
    return key;
  }
  void update(Key key, uint32_t interest) override {
    if (Slot* slot = find(key)) control(EPOLL_CTL_MOD, *slot, key, interest);
  }
  void unwatch(Key key) override {
    Slot* slot = find(key);
    if (slot == nullptr) return;
    // The descriptor is removed explicitly: one that was passed to another process would stay in
    // the set when it is closed here.
    ::epoll_ctl(epoll_fd.get(), EPOLL_CTL_DEL, slot->fd, nullptr);
    if (++slot->generation == 0) slot->generation = 1;
    slot->fd = -1;
    free_slots.push_back(static_cast<uint32_t>(key));
    auto dropped = std::move(slot->watcher);
  }
  void flush_later(std::shared_ptr<SocketStream> stream) override {
    dirty.push_back(std::move(stream));
  }
  Loop& loop() override { return owner; }
  std::shared_ptr<LoopLink> link() override { return link_; }

  Slot* find(Key key) {
    auto index = static_cast<uint32_t>(key);
    if (index >= slots.size() || slots[index].generation != static_cast<uint32_t>(key >> 32) ||
        !slots[index].watcher)
      return nullptr;
    return &slots[index];
  }

  bool control(int operation, const Slot& slot, Key key, uint32_t interest) {
    epoll_event event{};
    event.events = epoll_events(interest) | slot.trigger;
    event.data.u64 = key;
    return ::epoll_ctl(epoll_fd.get(), operation, slot.fd, &event) == 0;
  }

  void handle(uint64_t token, uint32_t events) {
    Slot* slot = find(token);
    if (slot == nullptr) return;
    uint32_t what = (events & EPOLLIN ? kRead : 0u) | (events & EPOLLOUT ? kWrite : 0u);
    // A watcher hears of errors and hang-ups whatever its interest is.
    if (events & (EPOLLERR | EPOLLHUP)) what |= kRead | kWrite | kHangup;
    if (events & EPOLLRDHUP) what |= kRead | kHangup;
    auto watcher = slot->watcher;  // Kept alive here, because the slot may be freed meanwhile.
    if (watcher->on_ready(what))
      again.push_back({token, (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) | EPOLLIN});
  }

  void run_posted() {
    {
      MutexLock lock(post_mutex);
      if (posted.empty()) return;
    }
    std::vector<Task> tasks;
    {
      MutexLock lock(post_mutex);
      tasks.swap(posted);
    }
    for (Task& task : tasks) task();
  }

  // Called by the one waiting thread. A timeout of epoll_wait() would be set up and taken down in
  // the kernel at every wait. The alarm is set only when it has to ring earlier; when it rings too
  // early, wait() just returns.
  int wait_until(epoll_event* events, int64_t until_us) {
    if (until_us < alarm_us) {
      const itimerspec at{{},
                          {until_us / 1'000'000, static_cast<long>(until_us % 1'000'000) * 1000}};
      RT_CHECK(::timerfd_settime(alarm_fd.get(), TFD_TIMER_ABSTIME, &at, nullptr) == 0);
      alarm_us = until_us;
    }
    return wait_events(epoll_fd.get(), events, kMaxEvents, -1);
  }

  void publish_deadline() { next_deadline_us.store(timers.next_deadline_us()); }

  void flush_all() {
    flushing.swap(dirty);
    for (auto& stream : flushing) stream->turn_flush();
    flushing.clear();
  }

  struct Waker {
    void wake() {
      if (pending.exchange(true)) return;
      uint64_t one = 1;
      (void)!::write(event_fd.get(), &one, sizeof(one));
    }
    const Fd event_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::atomic<bool> pending{false};
  };
  void wake() { waker->wake(); }

  PollLoop& owner;
  const Fd epoll_fd, alarm_fd;
  // When the alarm will ring; used by the waiting thread only.
  int64_t alarm_us = TimerHeap::kNever;
  // Shared with a function from PollLoop::waker() that is running while the loop is destroyed.
  const std::shared_ptr<Waker> waker = std::make_shared<Waker>();
  std::atomic<int64_t> next_deadline_us{TimerHeap::kNever};
  std::atomic<int> waiters{0};

  Mutex post_mutex;
  std::vector<Task> posted GUARDED_BY(post_mutex);

  std::shared_ptr<LoopLink> link_;
  TimerHeap timers;
  std::deque<Slot> slots;
  std::vector<uint32_t> free_slots;
  struct Again {
    uint64_t token;
    uint32_t events;
  };
  // Edge-triggered streams that stopped at their share of a turn and may have more to read.
  std::vector<Again> again;
  std::vector<std::shared_ptr<SocketStream>> dirty, flushing;
};

PollLoop::PollLoop(Waiters waiters) : impl_(std::make_unique<Impl>(*this, waiters)) {}
PollLoop::~PollLoop() = default;

bool PollLoop::wait(Ready& ready, int64_t timeout_us) {
  Impl& impl = *impl_;
  ready.count = 0;
  // The waiter is counted before the deadline is read: run_after() stores the deadline, then looks
  // for waiters, so one of the two sees the other.
  const int before = impl.waiters.fetch_add(1);
  int64_t until = timeout_us == 0 ? 0 : impl.next_deadline_us.load();
  epoll_event events[kMaxEvents];
  int n;
  if (timeout_us != 0 && impl.alarm_fd.valid()) {
    RT_CHECK(before == 0);
    if (timeout_us > 0) until = std::min(until, steady_now_us() + timeout_us);
    n = impl.wait_until(events, until);
  } else {
    if (timeout_us != 0 && until != TimerHeap::kNever) {
      int64_t left = std::max<int64_t>(0, until - steady_now_us());
      timeout_us = timeout_us < 0 ? left : std::min(timeout_us, left);
    }
    n = wait_events(impl.epoll_fd.get(), events, kMaxEvents, timeout_us);
  }
  impl.waiters.fetch_sub(1);
  if (n < 0) return false;
  for (int i = 0; i < n; ++i) {
    if (events[i].data.u64 == kWakeToken) {
      impl.waker->pending.exchange(false);
    } else if (events[i].data.u64 == kAlarmToken) {
      impl.alarm_us = TimerHeap::kNever;
    } else {
      ready.items[ready.count].events = events[i].events;
      ready.items[ready.count].token = events[i].data.u64;
      ++ready.count;
    }
  }
  return true;
}

void PollLoop::dispatch(const Ready& ready) {
  Impl& impl = *impl_;
  std::vector<Impl::Again> left_over;
  left_over.swap(impl.again);
  for (int i = 0; i < ready.count; ++i) impl.handle(ready.items[i].token, ready.items[i].events);
  for (const auto& item : left_over) impl.handle(item.token, item.events);
  if (impl.timers.next_deadline_us() != TimerHeap::kNever) impl.timers.fire_due(steady_now_us());
  impl.run_posted();
  impl.publish_deadline();
  flush_all();
  if (!impl.again.empty()) wake();
}

void PollLoop::flush_all() { impl_->flush_all(); }

void PollLoop::send_last(int64_t limit_us) {
  const int64_t until_us = steady_now_us() + limit_us;
  for (const Slot& slot : impl_->slots) {
    if (!slot.watcher) continue;
    while (!slot.watcher->send_last()) {
      const int64_t left_us = until_us - steady_now_us();
      pollfd writable{slot.fd, POLLOUT, 0};
      if (left_us <= 0 || ::poll(&writable, 1, static_cast<int>(left_us / 1000 + 1)) < 0) break;
    }
  }
}

void PollLoop::wake() { impl_->wake(); }
std::function<void()> PollLoop::waker() const {
  return [weak = std::weak_ptr<Impl::Waker>(impl_->waker)] {
    if (auto waker = weak.lock()) waker->wake();
  };
}
int64_t PollLoop::now_us() const { return steady_now_us(); }

Loop::TimerId PollLoop::run_after(int64_t delay_us, Task task) {
  Impl& impl = *impl_;
  int64_t before = impl.timers.next_deadline_us();
  TimerId id = impl.timers.add(steady_now_us() + std::max<int64_t>(0, delay_us), std::move(task));
  if (impl.timers.next_deadline_us() < before) {
    impl.publish_deadline();
    if (impl.waiters.load() > 0) wake();  // A thread may be sleeping until a later deadline.
  }
  return id;
}

void PollLoop::cancel(TimerId id) { impl_->timers.cancel(id); }

void PollLoop::post(Task task) {
  {
    MutexLock lock(impl_->post_mutex);
    impl_->posted.push_back(std::move(task));
  }
  wake();
}

void PollLoop::connect(const Address& address, int64_t timeout_us,
                       std::function<void(Result<std::unique_ptr<Stream>>)> done) {
  start_connect(*impl_, address, timeout_us, std::move(done));
}

Result<std::unique_ptr<Listener>> PollLoop::listen(const Address& address,
                                                   std::function<void(int fd)> accept) {
  return make_listener(*impl_, address, std::move(accept));
}

Result<std::unique_ptr<Listener>> PollLoop::listen_fd(int listening_fd,
                                                      std::function<void(int fd)> accept) {
  return make_listener(*impl_, listening_fd, std::move(accept));
}

std::unique_ptr<Stream> PollLoop::adopt(int fd) { return make_stream(*impl_, fd); }

std::unique_ptr<FdWatch> PollLoop::watch_readable(int fd, Task on_readable) {
  return make_fd_watch(*impl_, fd, std::move(on_readable));
}

}  // namespace rt::net
