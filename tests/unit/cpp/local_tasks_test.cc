// Objects and tasks of the C++ API in local mode.
#include <future>
#include <stdexcept>

#include "local_mode.h"

namespace local_tasks {

using namespace ray::internal;

int Plus(int a, int b) { return a + b; }
int Add1(int a) { return a + 1; }
void Nothing() {}
std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}
int Boom(int x) {
  if (x > 0) throw std::invalid_argument("no " + std::to_string(x));
  return x;
}
int Nested(int depth) { return depth == 0 ? 0 : 1 + *ray::Task(Nested).Remote(depth - 1).Get(); }
int SumOf(std::vector<ray::ObjectRef<int>> refs) {
  int sum = 0;
  for (auto& ref : refs) sum += *ref.Get();
  return sum;
}
ray::ObjectRef<int> Indirect(int x) { return ray::Put(x); }
int TakesRef(ray::ObjectRef<int> ref) { return *ref.Get(); }
std::promise<void>* g_gate = nullptr;
int WaitForGate(int x) {
  g_gate->get_future().wait();
  return x;
}
int NotRegistered(int x) { return x; }

RAY_REMOTE(Plus, Add1, Nothing, Repeat, Boom, Nested, SumOf, Indirect, TakesRef, WaitForGate);

using LocalTasks = LocalMode;

TEST(Lifecycle, InitAndShutdown) {
  EXPECT_FALSE(ray::IsInitialized());
  EXPECT_THROW(ray::Put(1), RayException);
  ray::RayConfig config;
  config.local_mode = true;
  ray::Init(config);
  config.ray_namespace = "ignored";
  ray::Init(config);
  EXPECT_TRUE(ray::IsInitialized());
  EXPECT_EQ(ray::GetNamespace().size(), 56u);
  auto kept = ray::Put(1);
  ray::Shutdown();
  EXPECT_FALSE(ray::IsInitialized());
  EXPECT_THROW(kept.Get(), RayException);
}

TEST_F(LocalTasks, PutAndGet) {
  auto ref = ray::Put(std::string("hello"));
  EXPECT_EQ(*ref.Get(), "hello");
  EXPECT_EQ(*ray::Get(ref, 100), "hello");
  EXPECT_EQ(*ray::Get<std::string>(std::vector<std::string>{ref.ID()})[0], "hello");
  auto same = ray::ObjectRef<std::string>(ref.ID());
  EXPECT_TRUE(same == ref);
  EXPECT_THROW(ray::ObjectRef<int>(std::string(28, 'x')), RayException);
  EXPECT_THROW(ray::ObjectRef<int>().Get(), RayException);
}

TEST_F(LocalTasks, CallsWithValuesAndReferences) {
  auto a = ray::Task(Plus).Remote(1, 2);
  auto b = ray::Task(Plus).SetName("second").SetResource("CPU", 1).Remote(a, ray::Put(10));
  EXPECT_EQ(*b.Get(), 13);
  EXPECT_EQ(*ray::Task(Repeat).Remote("ab", 3).Get(), "ababab");
  ray::Task(Nothing).Remote().Get();
  std::vector<ray::ObjectRef<int>> all{a, b};
  auto values = ray::Get(all);
  EXPECT_EQ(*values[0], 3);
  EXPECT_EQ(*values[1], 13);
}

TEST_F(LocalTasks, ReferencesInsideOfValues) {
  EXPECT_EQ(*ray::Task(SumOf)
                 .Remote(std::vector<ray::ObjectRef<int>>{ray::Put(1), ray::Task(Add1).Remote(1)})
                 .Get(),
            3);
  EXPECT_EQ(*ray::Task(Indirect).Remote(9).Get()->Get(), 9);
  EXPECT_EQ(*ray::Task(TakesRef).Remote(ray::Put(4)).Get(), 4);
}

TEST_F(LocalTasks, ManyAndDeepCalls) {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < 2000; ++i) refs.push_back(ray::Task(Add1).Remote(i));
  auto values = ray::Get(refs);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(*values[i], i + 1);
  EXPECT_EQ(*ray::Task(Nested).Remote(30).Get(), 30);
}

TEST_F(LocalTasks, ExceptionsReachTheCaller) {
  auto bad = ray::Task(Boom).Remote(7);
  try {
    bad.Get();
    FAIL();
  } catch (const RayTaskException& e) {
    std::string text = e.what();
    EXPECT_NE(text.find("Boom"), std::string::npos) << text;
    EXPECT_NE(text.find("std::invalid_argument"), std::string::npos) << text;
    EXPECT_NE(text.find("no 7"), std::string::npos) << text;
  }
  // A task whose argument is an error fails with that error.
  EXPECT_THROW(ray::Task(Add1).Remote(bad).Get(), RayTaskException);
}

TEST_F(LocalTasks, GetAndWaitObserveTimeouts) {
  std::promise<void> gate;
  g_gate = &gate;
  auto slow = ray::Task(WaitForGate).Remote(5);
  auto fast = ray::Task(Add1).Remote(1);
  auto after = ray::Task(Add1).Remote(slow);
  EXPECT_THROW(slow.Get(20), RayTimeoutException);
  auto one = ray::Wait(std::vector<ray::ObjectRef<int>>{slow, fast, after}, 1, -1);
  ASSERT_EQ(one.ready.size(), 1u);
  EXPECT_TRUE(one.ready.front() == fast);
  EXPECT_EQ(one.unready.size(), 2u);
  EXPECT_EQ(ray::Wait(std::vector<ray::ObjectRef<int>>{slow, fast}, 2, 20).unready.size(), 1u);
  gate.set_value();
  EXPECT_EQ(*after.Get(), 6);
  EXPECT_THROW(ray::Wait(std::vector<ray::ObjectRef<int>>{fast}, 2, 0), RayException);
}

TEST_F(LocalTasks, WaitTakesNoMoreThanWereAskedFor) {
  const std::vector<ray::ObjectRef<int>> both{ray::Put(1), ray::Put(2)};
  auto one = ray::Wait(both, 1, -1);
  ASSERT_EQ(one.ready.size(), 1u);
  EXPECT_TRUE(one.ready.front() == both[0]);
  EXPECT_EQ(one.unready.size(), 1u);
  EXPECT_EQ(ray::Wait(both, 0, -1).unready.size(), 2u);
  EXPECT_EQ(ray::Wait(both, 2, -1).ready.size(), 2u);
}

TEST_F(LocalTasks, UnregisteredFunctionsAndWrongResourcesThrowAtTheCall) {
  EXPECT_THROW(ray::Task(NotRegistered).Remote(1), RayException);
  EXPECT_THROW(ray::Task(Add1).SetResource("CPU", 1.5).Remote(1), RayException);
  EXPECT_THROW(ray::Task(Add1).SetResources({{"", 1}}).Remote(1), RayException);
  EXPECT_THROW(ray::Task(Add1).SetResource("x\xff", 1).Remote(1), RayException);
}

TEST_F(LocalTasks, ReferencesDoNotOutliveAShutdown) {
  auto old = ray::Put(1);
  ray::Shutdown();
  SetUp();
  EXPECT_THROW(old.Get(), RayException);
  EXPECT_THROW(ray::Task(Add1).Remote(old), RayException);
  EXPECT_EQ(*ray::Task(Add1).Remote(1).Get(), 2);
}

TEST_F(LocalTasks, ExitActorOutsideOfAnActor) {
  EXPECT_THROW(ray::ExitActor(), std::logic_error);
  EXPECT_FALSE(ray::WasCurrentActorRestarted());
}

}  // namespace local_tasks
