#include <ray/api.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

// Hands back what it was given, whatever it is.
msgpack::type::variant Echo(msgpack::type::variant value) { return value; }
int Plus(int a, int b) { return a + b; }
std::string Variable(std::string name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}
double Half(double x) { return x / 2; }
std::string Joined(std::vector<std::string> parts, std::string separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i ? separator : "") + parts[i];
  return out;
}
std::map<std::string, std::vector<int>> Doubled(std::map<std::string, std::vector<int>> table) {
  for (auto& row : table) {
    for (int& value : row.second) value *= 2;
  }
  return table;
}
std::size_t Length(std::vector<unsigned char> bytes) { return bytes.size(); }
std::vector<unsigned char> Zeros(int count) {
  return std::vector<unsigned char>(static_cast<std::size_t>(count));
}
std::tuple<int, std::string> Pair(int number) { return {number, std::to_string(number)}; }
std::string NotText() { return "\xff\xfe"; }
void Nothing() {}
int Throws(int x) { throw std::out_of_range("x is " + std::to_string(x)); }
// Throws in a file's first `failures` calls.
int ThrowsFirst(std::string file, int failures) {
  std::ofstream(file, std::ios::app) << "x";
  std::ifstream in(file, std::ios::ate);
  if (in.tellg() <= failures) throw std::runtime_error("not yet");
  return static_cast<int>(in.tellg());
}
int Pid() { return getpid(); }
int SumOf(std::vector<ray::ObjectRef<int>> refs) {
  int sum = 0;
  for (const auto& value : ray::Get(refs)) sum += *value;
  return sum;
}
std::vector<ray::ObjectRef<int>> MakeRefs(int count) {
  std::vector<ray::ObjectRef<int>> refs;
  for (int i = 0; i < count; ++i) refs.push_back(ray::Put(i * i));
  return refs;
}
// Says that it started, then waits for another file.
int Wait(std::string started, std::string go) {
  std::ofstream(started) << "x";
  for (int i = 0; i < 1000 && !std::ifstream(go).good(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return 7;
}
int TwicePython(int x) {
  return 2 * *ray::Task(ray::PyFunction<int>{"cross_module", "increment"}).Remote(x).Get();
}

struct Base {
  virtual ~Base() = default;
  std::string Kind() { return "base"; }
};
struct Counter : Base {
  static Counter* Create(int start) {
    auto* counter = new Counter;
    counter->value = start;
    return counter;
  }
  static Counter* Broken(int) { throw std::runtime_error("no luck"); }
  int Add(int n) { return value += n; }
  int Fail() { throw std::logic_error("as asked"); }
  int Pid() { return getpid(); }
  int value = 0;
};
Counter* MakeCounter() { return Counter::Create(100); }

RAY_REMOTE(Echo, Plus, Half, Variable, Joined, Doubled, Length, Zeros, Pair, NotText, Nothing,
           Throws, ThrowsFirst, Pid, SumOf, MakeRefs, Wait, TwicePython);
RAY_REMOTE(Counter::Create, Counter::Broken, MakeCounter, &Counter::Add, &Counter::Fail,
           &Counter::Pid, &Base::Kind);
