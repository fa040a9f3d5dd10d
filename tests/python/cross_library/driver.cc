// Calls Python from C++; each line of output is a fact the test knows.
#include <ray/api.h>

#include <functional>
#include <iostream>
#include <map>

using ray::PyActorClass;
using ray::PyActorMethod;
using ray::PyFunction;
using namespace ray::internal;

namespace {

// The exception's class as the driver sees it, and whether its text holds `part`.
template <class E>
void Fails(const std::string& name, const std::string& part, const std::function<void()>& call) {
  try {
    call();
    std::cout << name << ": no exception" << std::endl;
  } catch (const E& e) {
    bool holds = std::string(e.what()).find(part) != std::string::npos;
    std::cout << name << ": " << (holds ? "as expected" : e.what()) << std::endl;
  } catch (const std::exception& e) {
    std::cout << name << ": another exception: " << e.what() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  ray::RayConfig config;
  ray::Init(config, argc, argv);
  auto increment = PyFunction<int>{"cross_module", "increment"};
  std::cout << "function: " << *ray::Task(increment).SetResource("CPU", 1).Remote(1).Get()
            << std::endl;
  std::cout << "decorated: "
            << *ray::Task(PyFunction<int>{"cross_module", "decorated"}).Remote(5).Get()
            << std::endl;
  std::cout << "reference: "
            << *ray::Task(increment).Remote(ray::Task(increment).Remote(ray::Put(10))).Get()
            << std::endl;
  auto table =
      *ray::Task(PyFunction<std::map<std::string, std::vector<double>>>{"cross_module", "table"})
           .Remote("rows", std::vector<double>{1, 2.5})
           .Get();
  std::cout << "table: " << table["rows"].size() << " " << table["rows"][1] << std::endl;
  ray::Task(PyFunction<void>{"cross_module", "nothing"}).Remote().Get();
  std::cout << "bytes: "
            << ray::Task(PyFunction<std::vector<char>>{"cross_module", "zeros"})
                   .Remote(300000)
                   .Get()
                   ->size()
            << std::endl;
  Fails<RayTaskException>("raises", "ValueError: x is 3", [] {
    ray::Task(PyFunction<int>{"cross_module", "fail"}).Remote(3).Get();
  });
  Fails<RayTaskException>("no module", "No module named 'absent_module'",
                          [] { ray::Task(PyFunction<int>{"absent_module", "f"}).Remote().Get(); });
  Fails<RayTaskException>("no function", "absent", [] {
    ray::Task(PyFunction<int>{"cross_module", "absent"}).Remote().Get();
  });
  Fails<RayTaskException>("no plain result", "type set", [] {
    ray::Task(PyFunction<int>{"cross_module", "a_set"}).Remote().Get();
  });
  Fails<RayTaskException>("arguments", "positional argument",
                          [&] { ray::Task(increment).Remote().Get(); });
  Fails<RayException>("another type", "cannot be read as int",
                      [] { ray::Task(PyFunction<int>{"cross_module", "text"}).Remote().Get(); });

  auto actor =
      ray::Actor(PyActorClass{"cross_module", "Counter"}).SetName("python counter").Remote(10);
  std::cout << "actor: " << *actor.Task(PyActorMethod<int>{"add"}).Remote(5).Get() << std::endl;
  auto found = ray::GetActor("python counter");
  std::cout << "found: " << *found->Task(PyActorMethod<int>{"add"}).Remote(ray::Put(5)).Get()
            << std::endl;
  std::cout << "absent: " << (ray::GetActor("nobody") ? "there" : "not there") << std::endl;
  Fails<RayTaskException>("method raises", "KeyError: 'gone'",
                          [&] { actor.Task(PyActorMethod<int>{"fail"}).Remote().Get(); });
  Fails<RayTaskException>("no method", "has no attribute 'absent'",
                          [&] { actor.Task(PyActorMethod<int>{"absent"}).Remote().Get(); });
  // A Python task of this job that looks the actor up by its name.
  std::cout << "from Python: "
            << *ray::Task(PyFunction<int>{"cross_module", "add_by_name"})
                    .Remote(std::string("python counter"), 1)
                    .Get()
            << std::endl;
  actor.Kill();
  Fails<RayActorException>("killed", "",
                           [&] { actor.Task(PyActorMethod<int>{"add"}).Remote(1).Get(); });
  ray::Shutdown();
}
