// Actors of the C++ API in local mode.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "local_mode.h"

namespace local_actors {

using namespace ray::internal;

// The number of Counter objects that exist, so that tests see when an actor ends.
std::mutex g_mutex;
std::condition_variable g_changed;
int g_alive = 0;
void count_object(int change) {
  std::lock_guard lock(g_mutex);
  g_alive += change;
  g_changed.notify_all();
}

// A base class with a method of its own.
struct Named {
  virtual ~Named() = default;
  std::string Title() { return "title"; }
};

class Counter : public Named {
 public:
  explicit Counter(int start) : value_(start) { count_object(1); }
  ~Counter() override { count_object(-1); }
  static Counter* Create(int start) { return new Counter(start); }
  static Counter* CreateBroken() { throw std::runtime_error("no luck"); }

  int Add(int n) { return value_ += n; }
  int Value() const { return value_; }
  bool Restarted() { return ray::WasCurrentActorRestarted(); }
  void Quit() { ray::ExitActor(); }
  int AddTo(ray::ActorHandle<Counter> other, int n) {
    return *other.Task(&Counter::Add).Remote(n).Get();
  }
  // Returns true when two calls run at the same time.
  bool Meet() {
    std::unique_lock lock(mutex_);
    if (++met_ == 2) changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return met_ >= 2; });
  }

 private:
  int value_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int met_ = 0;
};
ray::ActorHandle<Counter> MakeCounter(int start) {
  return ray::Actor(Counter::Create).Remote(start);
}

RAY_REMOTE(Counter::Create, Counter::CreateBroken, &Counter::Add, &Counter::Value,
           &Counter::Restarted, &Counter::Quit, &Counter::AddTo, &Counter::Meet, &Named::Title,
           MakeCounter);

using LocalActors = LocalMode;

TEST_F(LocalActors, CallsRunInOrder) {
  auto counter = ray::Actor(Counter::Create).Remote(ray::Put(100));
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 1; i <= 100; ++i) refs.push_back(counter.Task(&Counter::Add).Remote(1));
  auto values = ray::Get(refs);
  for (int i = 1; i <= 100; ++i) ASSERT_EQ(*values[i - 1], 100 + i);
  EXPECT_EQ(*counter.Task(&Counter::Value).Remote().Get(), 200);
  EXPECT_EQ(*counter.Task(&Named::Title).Remote().Get(), "title");
}

TEST_F(LocalActors, HandlesTravel) {
  auto a = ray::Actor(Counter::Create).Remote(1);
  auto b = ray::Actor(Counter::Create).Remote(2);
  EXPECT_EQ(*a.Task(&Counter::AddTo).Remote(b, 40).Get(), 42);
  auto made = *ray::Task(MakeCounter).Remote(7).Get();
  EXPECT_EQ(*made.Task(&Counter::Add).Remote(1).Get(), 8);
  auto again = ray::ActorHandle<Counter>::FromBytes(a.ID());
  EXPECT_EQ(*again.Task(&Counter::Value).Remote().Get(), 1);
  EXPECT_THROW(ray::ActorHandle<Counter>::FromBytes(std::string(16, 'x')), RayException);
}

TEST_F(LocalActors, TheLastHandleEndsTheActorAfterItsCalls) {
  ray::ObjectRef<int> last;
  {
    auto counter = ray::Actor(Counter::Create).Remote(1);
    last = counter.Task(&Counter::Add).Remote(1);
  }
  EXPECT_EQ(*last.Get(), 2);
  std::unique_lock lock(g_mutex);
  EXPECT_TRUE(g_changed.wait_for(lock, std::chrono::seconds(10), [] { return g_alive == 0; }));
}

TEST_F(LocalActors, NamesAreUniqueInANamespace) {
  auto counter = ray::Actor(Counter::Create).SetName("c").Remote(5);
  auto found = ray::GetActor<Counter>("c");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->Task(&Counter::Value).Remote().Get(), 5);
  EXPECT_TRUE(ray::GetActor<Counter>("c", "tests"));
  EXPECT_FALSE(ray::GetActor<Counter>("c", "elsewhere"));
  EXPECT_FALSE(ray::GetActor<Counter>(""));
  EXPECT_THROW(ray::Actor(Counter::Create).SetName("c").Remote(1), RayException);
  auto other = ray::Actor(Counter::Create).SetName("c", "elsewhere").Remote(6);
  EXPECT_EQ(*ray::GetActor<Counter>("c", "elsewhere")->Task(&Counter::Value).Remote().Get(), 6);
  counter.Kill();
  EXPECT_FALSE(ray::GetActor<Counter>("c"));
}

TEST_F(LocalActors, OneOfSeveralThreadsGetsAName) {
  constexpr int kThreads = 4, kNames = 50;
  std::vector<ray::ActorHandle<Counter>> made;
  std::atomic<int> refused{0};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int n = 0; n < kNames; ++n) {
        try {
          auto actor = ray::Actor(Counter::Create).SetName("n" + std::to_string(n)).Remote(n);
          std::lock_guard lock(mutex);
          made.push_back(std::move(actor));
        } catch (const RayException&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made.size(), size_t{kNames});
  EXPECT_EQ(refused, (kThreads - 1) * kNames);
}

TEST_F(LocalActors, KillAndRestart) {
  auto counter = ray::Actor(Counter::Create).SetMaxRestarts(1).Remote(1);
  EXPECT_EQ(*counter.Task(&Counter::Add).Remote(1).Get(), 2);
  EXPECT_FALSE(*counter.Task(&Counter::Restarted).Remote().Get());
  counter.Kill(false);
  EXPECT_TRUE(*counter.Task(&Counter::Restarted).Remote().Get());
  EXPECT_EQ(*counter.Task(&Counter::Value).Remote().Get(), 1);
  counter.Kill(false);
  EXPECT_THROW(counter.Task(&Counter::Value).Remote().Get(), RayActorException);
}

TEST_F(LocalActors, ExitAndBrokenFactories) {
  auto counter = ray::Actor(Counter::Create).Remote(1);
  EXPECT_THROW(counter.Task(&Counter::Quit).Remote().Get(), RayActorException);
  EXPECT_THROW(counter.Task(&Counter::Value).Remote().Get(), RayActorException);
  auto broken = ray::Actor(Counter::CreateBroken).Remote();
  try {
    broken.Task(&Counter::Value).Remote().Get();
    FAIL();
  } catch (const RayActorException& e) {
    EXPECT_NE(std::string(e.what()).find("no luck"), std::string::npos) << e.what();
  }
}

TEST_F(LocalActors, ConcurrentMethodsMeet) {
  auto counter = ray::Actor(Counter::Create).SetMaxConcurrency(2).Remote(1);
  auto first = counter.Task(&Counter::Meet).Remote();
  auto second = counter.Task(&Counter::Meet).Remote();
  EXPECT_TRUE(*first.Get());
  EXPECT_TRUE(*second.Get());
}

TEST_F(LocalActors, DetachedActorsOutliveTheirHandles) {
  ray::Shutdown();
  ray::RayConfig config;
  config.local_mode = true;
  config.default_actor_lifetime = ray::ActorLifetime::DETACHED;
  ray::Init(config);
  ray::Actor(Counter::Create).SetName("stays").Remote(3);
  EXPECT_EQ(*ray::GetActor<Counter>("stays")->Task(&Counter::Value).Remote().Get(), 3);
}

}  // namespace local_actors
