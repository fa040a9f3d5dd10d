// RAY_REMOTE: the names of functions and methods, overloads, duplicates, and calls of registered
// functions.
#include <gtest/gtest.h>
#include <ray/api.h>

#include "invoke.h"

namespace {

using namespace ray::internal;

int Twice(int x) { return 2 * x; }
int Unregistered(int x) { return x; }
int Over(int a) { return a; }
std::string Over(std::string a) { return a + a; }
int Clash(int x) { return x; }

// The second base of Both lies at another address than the object, so a call of its method has to
// adjust the pointer.
struct Left {
  virtual ~Left() = default;
  int left = 1;
};
struct Right {
  virtual ~Right() = default;
  int right = 2;
  int AddRight(int n) { return right += n; }
};
struct Both : Left, Right {
  static Both* Create(int n) {
    auto* both = new Both;
    both->right = n;
    return both;
  }
  int Sum() const noexcept { return left + right; }
};
struct Stranger {
  int Hello() { return 1; }
};

RAY_REMOTE(Twice, RAY_FUNC(Over, int), RAY_FUNC(Over, std::string), Both::Create, &Both::Sum,
           &Right::AddRight, &Stranger::Hello);

StoredValue view(const EncodedValue& value) {
  return {ValueFormat::kMsgpack, value.bytes.data(), value.bytes.size(), nullptr};
}

CallResult call(const std::string& text, ActorInstance* self,
                const std::vector<EncodedValue>& values) {
  Arguments args;
  for (const auto& value : values) args.push_back(view(value));
  const FunctionEntry* entry = Registry::Instance().Find(text);
  if (!entry) throw RayException("not registered: " + text);
  return entry->invoke(entry->pointer.data(), self, args);
}

TEST(Registry, FunctionsAreFoundByTheirText) {
  EXPECT_EQ(Decode<int>(view(call("Twice", nullptr, {Encode(21)}).value)), 42);
  EXPECT_EQ(RegisteredText(&Twice), "Twice");
  EXPECT_EQ(RegisteredText(&Unregistered), "");
}

TEST(Registry, OverloadsHaveTheirOwnNames) {
  EXPECT_EQ(RegisteredText(RAY_FUNC(Over, int)), "RAY_FUNC(Over, int)");
  EXPECT_EQ(RegisteredText(RAY_FUNC(Over, std::string)), "RAY_FUNC(Over, std::string)");
  EXPECT_EQ(Decode<std::string>(view(
                call("RAY_FUNC(Over, std::string)", nullptr, {Encode(std::string("ab"))}).value)),
            "abab");
}

TEST(Registry, MethodsReachTheRightBase) {
  auto instance = call("Both::Create", nullptr, {Encode(10)}).instance;
  ASSERT_TRUE(instance);
  EXPECT_EQ(Decode<int>(view(call("&Both::Sum", instance.get(), {}).value)), 11);
  for (int expected : {15, 20})
    EXPECT_EQ(Decode<int>(view(call("&Right::AddRight", instance.get(), {Encode(5)}).value)),
              expected);
  EXPECT_THROW(call("&Stranger::Hello", instance.get(), {}), RayException);
  EXPECT_THROW(call("&Both::Sum", nullptr, {}), RayException);
}

TEST(Registry, WrongArgumentsAreErrors) {
  EXPECT_THROW(call("Twice", nullptr, {}), RayException);
  EXPECT_THROW(call("Twice", nullptr, {Encode(std::string("x"))}), RayException);
}

TEST(Registry, DuplicatesAreErrors) {
  EXPECT_TRUE(RegisterRemote("Clash", &Clash));
  try {
    RegisterRemote("Clash", &Clash);
    FAIL();
  } catch (const RayException& e) {
    EXPECT_NE(std::string(e.what()).find("Clash is registered twice"), std::string::npos)
        << e.what();
  }
  Registry::Instance().BeginLoading();
  RegisterRemote("Clash", &Clash);
  EXPECT_EQ(Registry::Instance().EndLoading().size(), 1u);
}

TEST(Registry, TextIsSplitAtCommasOfTheOutermostLevel) {
  EXPECT_EQ(SplitRegistration("f, RAY_FUNC(g, int, char),&A<int, 2>::h", 3),
            (std::vector<std::string>{"f", "RAY_FUNC(g, int, char)", "&A<int, 2>::h"}));
  EXPECT_THROW(SplitRegistration("f, g", 3), RayException);
}

TEST(MethodNames, TravelAsClassAndMethod) {
  EXPECT_EQ(split_method("&a::Counter::Add").class_name, "a::Counter");
  EXPECT_EQ(split_method("&a::Counter::Add").name, "Add");
  EXPECT_EQ(join_method("a::Counter", "Add"), "&a::Counter::Add");
  EXPECT_EQ(split_method("RAY_FUNC(&C::f, int)").class_name, "");
  EXPECT_EQ(class_of_factory("a::Counter::Create"), "a::Counter");
  EXPECT_EQ(class_of_factory("CreateCounter"), "CreateCounter");
}

}  // namespace
