// The fixture of tests with real processes: a loop, a reaper, and a scratch session directory with
// a `ray` package that consists of the real fork server and a `worker_main` of the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "common/base/clock.h"
#include "common/net/asio_loop.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

class ScratchDir {
 public:
  ScratchDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rt-node-XXXXXX").string();
    RT_CHECK(::mkdtemp(pattern.data()) != nullptr);
    root_ = pattern;
    std::filesystem::create_directories(root_ + "/logs");
    std::filesystem::create_directories(root_ + "/sockets");
  }
  ~ScratchDir() {
    std::error_code ec;
    std::filesystem::remove_all(root_, ec);
  }
  const std::string& root() const { return root_; }
  std::string path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

class AsioDriver {
 public:
  net::AsioLoop& loop() { return loop_; }
  // Runs the loop until `happened` returns true. Returns false when `timeout_us` passed first. That
  // is longer than the tests' time-outs of 60 s, whose callbacks refer to variables of the caller.
  bool run_until(const std::function<bool()>& happened, int64_t timeout_us = 70'000'000) {
    int64_t deadline = steady_now_us() + timeout_us;
    while (!happened()) {
      if (steady_now_us() > deadline) return false;
      loop_.run_after(500, [this] { loop_.stop(); });
      loop_.run();
    }
    return true;
  }

 private:
  net::AsioLoop loop_;
};

// Writes the package to <dir>/py/ray: the real fork server, and `worker_main` as the source of its
// worker_main.py.
inline void write_fake_package(const ScratchDir& dir, const std::string& worker_main) {
  namespace fs = std::filesystem;
  fs::create_directories(dir.path("py/ray/_private"));
  std::ofstream(dir.path("py/ray/__init__.py"));
  std::ofstream(dir.path("py/ray/_private/__init__.py"));
  std::ofstream(dir.path("py/ray/_raylet.py"))
      << "import ctypes\ndef set_parent_death_signal(signum):\n  ctypes.CDLL(None).prctl(1, "
         "signum)\n";
  std::ofstream(dir.path("py/ray/_private/worker_main.py")) << worker_main;
  for (std::string file : {"fork_server.py", "preload.py"})
    fs::copy_file(RT_SOURCE_DIR "/python/ray/_private/" + file,
                  dir.path("py/ray/_private/" + file));
}

class ProcessTest : public testing::Test {
 protected:
  net::Loop& loop() { return driver.loop(); }
  void write_fake_ray(const std::string& worker_main) { write_fake_package(dir, worker_main); }

  ScratchDir dir;
  AsioDriver driver;
  Reaper reaper{driver.loop()};
};

}  // namespace rt::node
