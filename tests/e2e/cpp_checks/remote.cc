#include "remote.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace {
std::mutex g_mutex;
std::condition_variable g_changed;
}  // namespace

int Plus(int a, int b) { return a + b; }
void Nothing() {}
std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}
int Sleep(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  return ms;
}
int WaitForFile(const std::string& path) {
  for (;; Sleep(1)) {
    if (int byte = std::ifstream(path).get(); byte != EOF) return byte;
  }
}
int SumOf(std::vector<ray::ObjectRef<int>> refs) {
  int sum = 0;
  for (const auto& value : ray::Get(refs)) sum += *value;
  return sum;
}
std::vector<ray::ObjectRef<int>> MakeRefs(int n) {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < n; ++i) refs.push_back(i % 2 ? ray::Put(i) : ray::Task(Plus).Remote(i, 0));
  return refs;
}
int TakesRef(ray::ObjectRef<int> ref) { return *ref.Get(); }
int Throws(int x) { throw std::out_of_range("x is " + std::to_string(x)); }
int Crash(int) { _exit(7); }
int CrashOnce(const std::string& file) {
  int fd = open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd >= 0) _exit(7);
  return 42;
}
void Say(const std::string& text) { std::cout << text; }
std::string Namespace() { return ray::GetNamespace(); }
std::string Echo(std::any value) { return std::any_cast<std::string>(value); }

Counter* Counter::Create(int start) {
  auto* counter = new Counter;
  counter->value_ = start;
  return counter;
}
Counter* Counter::CreateBroken() { throw std::runtime_error("no luck"); }
int Counter::Add(int n) { return value_ += n; }
int Counter::Pid() { return getpid(); }
bool Counter::Restarted() { return ray::WasCurrentActorRestarted(); }
void Counter::Quit() { ray::ExitActor(); }
void Counter::Crash() { _exit(3); }
bool Counter::Meet() {
  std::unique_lock<std::mutex> lock(g_mutex);
  if (++met_ == 2) g_changed.notify_all();
  return g_changed.wait_for(lock, std::chrono::minutes(2), [&] { return met_ >= 2; });
}
ray::ActorHandle<Counter> Counter::Self(ray::ActorHandle<Counter> self) { return self; }
ray::ActorHandle<Counter> MakeCounter(int start) {
  return ray::Actor(Counter::Create).Remote(start);
}

RAY_REMOTE(Plus, Nothing, Repeat, Sleep, WaitForFile, SumOf, MakeRefs, TakesRef, Throws, Crash,
           CrashOnce, Say, Namespace, Echo, MakeCounter);
RAY_REMOTE(Counter::Create, Counter::CreateBroken, &Counter::Add, &Counter::Pid,
           &Counter::Restarted, &Counter::Quit, &Counter::Crash, &Counter::Meet, &Counter::Self,
           &Counter::Title);
