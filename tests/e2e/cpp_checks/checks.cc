// Each check prints "ok <name>" or what went wrong; the exit code is the number of failures.
#include <ray/api.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>
#include <thread>

#include "remote.h"

using namespace ray::internal;

int OnlyInTheProgram(int x) { return x; }
RAY_REMOTE(OnlyInTheProgram);
int Unregistered(int x) { return x; }

namespace {

std::atomic<int> g_failures{0};
std::string g_directory;

void Fail(const std::string& why) { throw std::runtime_error(why); }
void Require(bool ok, const std::string& why) {
  if (!ok) Fail(why);
}
template <class A, class B>
void Equal(const A& a, const B& b) {
  if (!(a == b)) {
    std::ostringstream text;
    text << "got " << a << ", expected " << b;
    Fail(text.str());
  }
}
// Checks that `call` throws an E, or a class derived from it, whose text contains `part`.
template <class E>
void Throws(const std::function<void()>& call, const std::string& part) {
  try {
    call();
  } catch (const E& e) {
    Require(std::string(e.what()).find(part) != std::string::npos,
            "text without '" + part + "': " + e.what());
    return;
  } catch (const std::exception& e) {
    Fail(std::string("another exception, ") + DemangledName(typeid(e).name()) + ": " + e.what());
  }
  Fail("no exception");
}

constexpr int kPatienceMs = 120'000;

// Repeats a call to an actor, because calls between its death and its restart fail.
template <class T>
T Eventually(const std::function<T()>& call) {
  for (int i = 0;; ++i) {
    try {
      return call();
    } catch (const RayActorException& e) {
      if (i == kPatienceMs / 20) throw;
      Sleep(20);
    }
  }
}

void Check(const char* name, const std::function<void()>& check) {
  std::string said = std::string("ok ") + name;
  try {
    check();
  } catch (const std::exception& e) {
    ++g_failures;
    said = std::string("FAILED ") + name + ": " + e.what();
  }
  // Checks may run in several threads.
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::cout << said << std::endl;
}

void Values() {
  Check("values", [] {
    Equal(*ray::Get(ray::Put(7)), 7);
    Equal(*ray::Task(Plus).Remote(ray::Put(1), 2).Get(), 3);
    ray::Task(Nothing).Remote().Get();
    Equal(*ray::Task(Echo).Remote(std::any(std::string("any"))).Get(), "any");
  });
  Check("large values", [] {
    std::string big = *ray::Task(Repeat).Remote("0123456789", 300000).Get();
    Equal(big.size(), 3000000u);
    auto ref = ray::Put(big);
    Equal(ray::Task(Repeat).Remote(ref, 2).Get()->size(), 6000000u);
    Equal(ray::Task(Repeat).Remote(big, 1).Get()->size(), 3000000u);
    Require(*ref.Get() == big, "another value");
  });
  Check("references in values", [] {
    Equal(*ray::Task(SumOf)
               .Remote(std::vector<ray::ObjectRef<int>>{ray::Put(1), ray::Task(Plus).Remote(1, 1)})
               .Get(),
          3);
    auto refs = *ray::Task(MakeRefs).Remote(6).Get();
    int sum = 0;
    for (const auto& value : ray::Get(refs)) sum += *value;
    Equal(sum, 15);
    Equal(*ray::Task(SumOf).Remote(refs).Get(), 15);
  });
  Check("ids", [] {
    auto ref = ray::Put(5);
    Equal(*ray::Get<int>(std::vector<std::string>{ref.ID()}).front(), 5);
    Throws<RayException>([] { ray::ObjectRef<int>(std::string(28, 'x')); }, "not known");
  });
  Check("many tasks", [] {
    std::vector<ray::ObjectRef<int>> refs;
    for (int i = 0; i < 5000; ++i) refs.push_back(ray::Task(Plus).Remote(i, 1));
    auto values = ray::Get(refs);
    for (int i = 0; i < 5000; ++i) Equal(*values[i], i + 1);
  });
  Check("namespace", [] { Equal(*ray::Task(Namespace).Remote().Get(), ray::GetNamespace()); });
}

void Waiting() {
  Check("timeouts", [] {
    const std::string file = g_directory + "/the slow one may end";
    auto slow = ray::Task(WaitForFile).Remote(file);
    auto fast = ray::Task(Plus).Remote(1, 2);
    Throws<RayTimeoutException>([&] { slow.Get(50); }, "timed out");
    auto result = ray::Wait(std::vector<ray::ObjectRef<int>>{slow, fast}, 1, -1);
    Require(result.ready.front() == fast && result.unready.front() == slow, "not the fast one");
    Equal(ray::Wait(std::vector<ray::ObjectRef<int>>{slow, fast}, 2, 10).unready.size(), 1u);
    std::ofstream(file).put('.');
    Equal(*slow.Get(kPatienceMs), '.');
  });
  Check("as many objects as were asked for", [] {
    std::vector<ray::ObjectRef<int>> both{ray::Put(1), ray::Put(2)};
    ray::Get(both);
    auto result = ray::Wait(both, 1, -1);
    Equal(result.ready.size(), 1u);
    Equal(result.unready.size(), 1u);
    Require(result.ready.front() == both[0], "not the first one");
    Equal(ray::Wait(both, 0, -1).unready.size(), 2u);
  });
}

void Errors() {
  Check("exceptions", [] {
    auto bad = ray::Task(::Throws).Remote(3);
    Throws<RayTaskException>([&] { bad.Get(); }, "std::out_of_range: x is 3");
    Throws<RayTaskException>([&] { ray::Task(Plus).Remote(bad, 1).Get(); }, "Throws");
  });
  Check("a worker that dies", [] {
    Throws<RayWorkerException>([] { ray::Task(Crash).Remote(1).Get(); }, "died");
    // The crash is retried.
    Equal(*ray::Task(CrashOnce).Remote(g_directory + "/crashed").Get(), 42);
  });
  Check("functions that workers do not have", [] {
    Throws<RayTaskException>([] { ray::Task(OnlyInTheProgram).Remote(1).Get(); }, "shared library");
    Throws<RayException>([] { ray::Task(Unregistered).Remote(1); }, "RAY_REMOTE");
  });
  Check("wrong calls", [] {
    Throws<RayException>([] { ray::Task(Plus).SetResource("CPU", 0).Remote(1, 1); }, "0");
    Throws<std::invalid_argument>([] { ray::Task(TakesRef).Remote(ray::Put(1)); }, "local mode");
    Throws<std::logic_error>([] { ray::ExitActor(); }, "actor");
  });
}

void Actors() {
  Check("actors", [] {
    auto counter = ray::Actor(Counter::Create).Remote(ray::Put(10));
    std::vector<ray::ObjectRef<int>> refs;
    for (int i = 0; i < 1000; ++i) refs.push_back(counter.Task(&Counter::Add).Remote(1));
    auto values = ray::Get(refs);
    for (int i = 0; i < 1000; ++i) Equal(*values[i], 11 + i);
    Equal(*counter.Task(&Titled::Title).Remote().Get(), "a counter");
  });
  Check("handles", [] {
    auto made = *ray::Task(MakeCounter).Remote(3).Get();
    Equal(*made.Task(&Counter::Add).Remote(1).Get(), 4);
    auto self = *made.Task(&Counter::Self).Remote(made).Get();
    Equal(*self.Task(&Counter::Add).Remote(1).Get(), 5);
    Equal(*ray::ActorHandle<Counter>::FromBytes(made.ID()).Task(&Counter::Add).Remote(1).Get(), 6);
  });
  Check("names", [] {
    auto counter = ray::Actor(Counter::Create).SetName("named").Remote(1);
    Equal(*ray::GetActor<Counter>("named")->Task(&Counter::Add).Remote(1).Get(), 2);
    Require(!ray::GetActor<Counter>("nobody"), "found nobody");
    Require(!ray::GetActor<Counter>("named", "elsewhere"), "found elsewhere");
    Throws<RayException>([] { ray::Actor(Counter::Create).SetName("named").Remote(1); },
                         "ray::GetActor<T>(\"named\"");
    const std::string name(30000, 'n');
    auto long_named = ray::Actor(Counter::Create).SetName(name).Remote(1);
    Throws<RayException>([&] { ray::Actor(Counter::Create).SetName(name).Remote(1); },
                         "ray::GetActor<T>(\"" + name + "\"");
    Throws<RayException>([] { ray::Task(Plus).SetResource("x\xff", 1).Remote(1, 2); }, "UTF-8");
  });
  Check("restarts", [] {
    auto counter = ray::Actor(Counter::Create).SetMaxRestarts(1).Remote(1);
    Equal(*counter.Task(&Counter::Add).Remote(1).Get(), 2);
    Require(!*counter.Task(&Counter::Restarted).Remote().Get(), "restarted before it died");
    Throws<RayActorException>([&] { counter.Task(&Counter::Crash).Remote().Get(); }, "");
    Require(Eventually<bool>([&] { return *counter.Task(&Counter::Restarted).Remote().Get(); }),
            "not restarted");
    Equal(*counter.Task(&Counter::Add).Remote(1).Get(), 2);
    Throws<RayActorException>([&] { counter.Task(&Counter::Crash).Remote().Get(); }, "");
    Throws<RayActorException>([&] { counter.Task(&Counter::Add).Remote(1).Get(); }, "");
  });
  Check("ends of actors", [] {
    auto counter = ray::Actor(Counter::Create).SetMaxRestarts(3).Remote(1);
    Throws<RayActorException>([&] { counter.Task(&Counter::Quit).Remote().Get(); }, "");
    Throws<RayActorException>([&] { counter.Task(&Counter::Add).Remote(1).Get(); }, "");
    auto killed = ray::Actor(Counter::Create).Remote(1);
    int pid = *killed.Task(&Counter::Pid).Remote().Get();
    killed.Kill();
    Throws<RayActorException>([&] { killed.Task(&Counter::Add).Remote(1).Get(); },
                              "ActorHandle::Kill()");
    for (int i = 0; i < kPatienceMs / 10 && kill(pid, 0) == 0; ++i) Sleep(10);
    Require(kill(pid, 0) != 0, "its process lives");
    auto broken = ray::Actor(Counter::CreateBroken).Remote();
    Throws<RayActorException>([&] { broken.Task(&Counter::Add).Remote(1).Get(); }, "no luck");
  });
  Check("concurrency", [] {
    auto counter = ray::Actor(Counter::Create).SetMaxConcurrency(2).Remote(1);
    auto first = counter.Task(&Counter::Meet).Remote();
    auto second = counter.Task(&Counter::Meet).Remote();
    Require(*first.Get() && *second.Get(), "they did not meet");
  });
}

void PlacementGroups() {
  using ray::PlacementStrategy;
  Check("placement groups", [] {
    auto group =
        ray::CreatePlacementGroup({"", {{{"CPU", 1}}, {{"CPU", 1}}}, PlacementStrategy::PACK});
    Require(group.Wait(kPatienceMs / 1000), "not created");
    Require(ray::GetPlacementGroupById(group.GetID()).GetState() == ray::CREATED, "another state");
    Equal(*ray::Task(Plus).SetResource("CPU", 1).SetPlacementGroup(group, 1).Remote(1, 2).Get(), 3);
    Equal(*ray::Task(Plus).SetPlacementGroup(group, -1).Remote(1, 3).Get(), 4);
    auto counter =
        ray::Actor(Counter::Create).SetResource("CPU", 1).SetPlacementGroup(group, 0).Remote(1);
    Equal(*counter.Task(&Counter::Add).Remote(1).Get(), 2);
    Throws<RayException>([&] { ray::Task(Plus).SetPlacementGroup(group, 2).Remote(1, 2); },
                         "no bundle 2");
    Throws<RayException>(
        [&] { ray::Task(Plus).SetResource("CPU", 2).SetPlacementGroup(group, 0).Remote(1, 2); },
        "fit into no bundle");
    auto running = ray::Task(Sleep).SetResource("CPU", 1).SetPlacementGroup(group, 1).Remote(60000);
    auto queued = ray::Task(Sleep).SetResource("CPU", 1).SetPlacementGroup(group, 1).Remote(1);
    ray::RemovePlacementGroup(group.GetID());
    Throws<RayException>([&] { queued.Get(kPatienceMs); }, "placement group");
    // Calls succeed until the actor's process has been killed.
    Throws<RayActorException>(
        [&] {
          for (int i = 0; i < kPatienceMs / 20; ++i, Sleep(20))
            counter.Task(&Counter::Add).Remote(1).Get();
        },
        "its placement group was removed");
    Throws<RayException>([&] { group.Wait(kPatienceMs / 1000); }, "was removed");
    Require(ray::GetPlacementGroupById(group.GetID()).GetState() != ray::CREATED, "still created");
  });
  Check("names of placement groups", [] {
    auto group =
        ray::CreatePlacementGroup({"mine", {{{"CPU", 2}}}, PlacementStrategy::STRICT_PACK});
    auto found = ray::GetPlacementGroup("mine");
    Equal(found.GetID(), group.GetID());
    Equal(found.GetBundles().at(0).at("CPU"), 2.0);
    Require(found.GetStrategy() == PlacementStrategy::STRICT_PACK, "another strategy");
    Throws<RayException>(
        [] { ray::CreatePlacementGroup({"mine", {{{"CPU", 1}}}, PlacementStrategy::PACK}); },
        "mine");
    Require(ray::GetPlacementGroup("nobody").Empty(), "found nobody");
    Require(ray::GetPlacementGroupById(std::string(18, 'x')).Empty(), "found an unknown id");
    bool listed = false;
    for (const auto& one : ray::GetAllPlacementGroups()) listed |= one.GetID() == group.GetID();
    Require(listed, "not in the list");
    ray::RemovePlacementGroup(group.GetID());
    ray::RemovePlacementGroup(group.GetID());
    Require(ray::GetPlacementGroup("mine").Empty(), "found after its removal");
  });
  Check("placement groups that do not fit", [] {
    auto group = ray::CreatePlacementGroup({"", {{{"CPU", 64}}}, PlacementStrategy::PACK});
    Require(!group.Wait(0), "created");
    ray::RemovePlacementGroup(group.GetID());
    Throws<RayException>([] { ray::CreatePlacementGroup({"", {}, PlacementStrategy::PACK}); },
                         "a bundle or more");
    Throws<RayException>([] { ray::CreatePlacementGroup({"", {{}}, PlacementStrategy::PACK}); },
                         "reserves nothing");
  });
}

// Other threads of a program may be in calls when it shuts down.
void ShutdownDuringACall() {
  std::thread waiting([] {
    Check("a call during the shutdown",
          [] { Throws<RayException>([] { ray::Task(Sleep).Remote(60'000).Get(); }, "Shutdown"); });
  });
  std::thread choosing([] {
    Check("a wait during the shutdown", [] {
      std::vector<ray::ObjectRef<int>> slow{ray::Task(Sleep).Remote(60'000)};
      Throws<RayException>([&] { ray::Wait(slow, 1, -1); }, "Shutdown");
    });
  });
  Sleep(300);
  ray::Shutdown();
  waiting.join();
  choosing.join();
}

}  // namespace

int main(int argc, char** argv) {
  g_directory = argv[1];
  ray::RayConfig config;
  if (std::string(argv[2]) == "local") {
    config.local_mode = true;
  } else {
    config.head_args = {"--num-cpus=4"};
  }
  for (const char* arg : {"--memory=nan", "--num-cpus=inf", "--port=80.7", "--port=4294967376"}) {
    ray::RayConfig wrong;
    wrong.head_args = {arg};
    Check(arg, [&] { Throws<RayException>([&] { ray::Init(wrong); }, "head_args: "); });
  }
  ray::Init(config, argc - 2, argv + 2);
  RAYLOG(INFO) << "checks begin";
  Values();
  Waiting();
  if (!config.local_mode) Errors();
  if (!config.local_mode) Actors();
  if (!config.local_mode) PlacementGroups();
  if (config.local_mode) {
    ray::Shutdown();
  } else {
    ray::Task(Say).Remote("printed last").Get();
    ShutdownDuringACall();
  }
  Check("after the end", [] {
    Require(!ray::IsInitialized(), "still initialized");
    Throws<RayException>([] { ray::Put(1); }, "Init");
  });
  return g_failures;
}
