// The fixture of the launch tests: a temp root, a home directory and fake daemons for one test.
// The end of the test removes the directories and ends every process that was started in them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "launch/node/launch.h"

namespace rt::launch {

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "launch-test-XXXXXX").string();
    home_ = mkdtemp(pattern.data());
    for (const char* name : {"RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH",
                             "RAY_AUTH_MODE", "RAY_NODE_IP_ADDRESS", "FAKE_FAIL", "FAKE_CRASH",
                             "FAKE_STUBBORN", "FAKE_SILENT", "NOTIFY_SOCKET"})
      unsetenv(name);
    set("HOME", home_);
    set("RAY_TMPDIR", home_ + "/root");
    set("RAY_BIN", home_ + "/bin");
    std::filesystem::create_directory(home_ + "/bin");
    auto fake = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_daemon";
    for (const char* name : {"ray-head", "ray-node-manager", "ray-object-store"})
      std::filesystem::create_symlink(fake, home_ + "/bin/" + name);
  }
  ~LaunchTest() override {
    for (auto& node : started_) {
      if (node.lifeline_fd >= 0) close(node.lifeline_fd);
      stop_processes(node.processes, 0);
    }
    std::filesystem::remove_all(home_);
  }

  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  static NodeOptions head() {
    NodeOptions options;
    options.head = true;
    options.port = 0;
    options.node_ip = "127.0.0.1";
    options.resources.num_cpus = 2;
    return options;
  }
  Result<StartedNode> start(const NodeOptions& options) {
    auto node = start_node(options);
    if (node) started_.push_back(*node);
    return node;
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // The names below the temp root. A failed start must leave none.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(home_ + "/root", error))
      names.push_back(entry.path().filename());
    return names;
  }
  std::string root() const { return home_ + "/root"; }
  const std::string& home() const { return home_; }

 private:
  std::string home_;
  std::vector<StartedNode> started_;
};

inline std::string error_of(const Result<StartedNode>& result) {
  return result ? "no error" : result.error().message;
}

}  // namespace rt::launch
