// The functions and actors that the checks run in the cluster.
#pragma once

#include <ray/api.h>

#include <string>
#include <vector>

int Plus(int a, int b);
void Nothing();
std::string Repeat(const std::string& text, int times);
int Sleep(int ms);
// Returns the first byte of the file, for which it waits.
int WaitForFile(const std::string& path);
int SumOf(std::vector<ray::ObjectRef<int>> refs);
std::vector<ray::ObjectRef<int>> MakeRefs(int n);
int TakesRef(ray::ObjectRef<int> ref);
int Throws(int x);
int Crash(int x);
// Ends its process when it is called for the first time.
int CrashOnce(const std::string& file);
std::string Namespace();
// Prints the text without a newline.
void Say(const std::string& text);
std::string Echo(std::any value);

struct Titled {
  virtual ~Titled() = default;
  std::string Title() const { return "a counter"; }
};

class Counter : public Titled {
 public:
  static Counter* Create(int start);
  static Counter* CreateBroken();
  int Add(int n);
  int Pid();
  bool Restarted();
  void Quit();
  void Crash();
  // Returns when two calls are inside at the same time; false after two minutes.
  bool Meet();
  ray::ActorHandle<Counter> Self(ray::ActorHandle<Counter> self);

 private:
  int value_ = 0;
  int met_ = 0;
};

ray::ActorHandle<Counter> MakeCounter(int start);
