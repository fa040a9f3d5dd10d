// A tour of the C++ API. `example` starts a cluster of its own, or joins the one of RAY_ADDRESS or
// --ray_address=HOST:PORT.
#include <ray/api.h>

#include <iostream>

#include "remote.h"

namespace {

void Tasks() {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 1; i <= 5; ++i) refs.push_back(ray::Task(Square).Remote(i));
  std::cout << "squares:";
  for (const auto& value : ray::Get(refs)) std::cout << ' ' << *value;
  std::cout << std::endl;

  // A reference stands for its value, wherever that is stored.
  auto order = ray::Put(Order{7, "Ada", {19.5, 0.5, 22}});
  std::cout << "total of order 7: " << *ray::Task(Total).Remote(order).Get() << std::endl;
  std::cout << "sum of squares to 10: " << *ray::Task(SumOfSquares).SetName("sum").Remote(10).Get()
            << std::endl;
  std::cout << *ray::Task(Greet).SetResource("CPU", 1).Remote("cluster").Get() << std::endl;
}

void Waiting() {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < 8; ++i) refs.push_back(ray::Task(Square).Remote(i));
  auto result = ray::Wait(refs, 8, 30000);
  std::cout << "ready: " << result.ready.size() << ", not ready: " << result.unready.size()
            << std::endl;
}

void Actors() {
  auto ledger = ray::Actor(Ledger::Create).SetName("ledger").Remote(100.0);
  std::cout << "booked: " << *ledger.Task(&Ledger::Book).Remote("Ada", 5.0).Get() << std::endl;
  auto booked = ray::Task(BookOrder).Remote(ledger, Order{8, "Ada", {1, 2}});
  std::cout << "booked by a task: " << *booked.Get() << std::endl;
  auto same = ray::GetActor<Ledger>("ledger");
  std::cout << "balance: " << *same->Task(&Ledger::Balance).Remote("Ada").Get() << std::endl;
  ledger.Kill();
  try {
    ledger.Task(&Ledger::Balance).Remote("Ada").Get();
  } catch (const ray::internal::RayActorException&) {
    std::cout << "the ledger is closed" << std::endl;
  }
}

void Errors() {
  try {
    ray::Task(Divide).Remote(1, 0).Get();
  } catch (const ray::internal::RayTaskException& error) {
    std::cout << "error: " << error.what() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  ray::RayConfig config;
  ray::Init(config, argc, argv);
  Tasks();
  Waiting();
  Actors();
  Errors();
  ray::Shutdown();
  return 0;
}
