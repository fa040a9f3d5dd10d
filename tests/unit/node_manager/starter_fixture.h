// The fixture of tests that start workers.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/base/rng.h"
#include "daemons/node_manager/process/worker_starter.h"
#include "process_fixture.h"

namespace rt::node {

class WorkerStarterTest : public ProcessTest {
 protected:
  void make(const std::string& body) {
    write_fake_ray(body);
    WorkerStarterOptions options;
    options.python_path = dir.path("py");
    options.session_dir = dir.root();
    options.socket_path = "/nowhere";
    options.node_id_hex = "ab";
    options.end_children = end_children;
    options.idle_server_us = idle_server_us;
    options.crash_pause_us = crash_pause_us;
    starter = std::make_unique<WorkerStarter>(
        loop(), reaper, options,
        WorkerStarterEvents{
            [this](const WorkerId& id, ProcessId p) { spawned[id] = p; },
            [this](const WorkerId& id, const std::string& why) { failed[id] = why; },
            [this](const WorkerId& id, const ProcessEnd& end) { ended[id] = end; }});
    starter->start();
  }
  WorkerId spawn(const WorkerKind& kind = {}) {
    WorkerId id = WorkerId::random(rng);
    starter->spawn(id, kind);
    return id;
  }
  bool await_end(const WorkerId& id) {
    return driver.run_until([&] { return ended.contains(id); });
  }

  Rng rng{1};
  bool end_children = true;
  int64_t idle_server_us = 600'000'000, crash_pause_us = 600'000'000;
  std::unique_ptr<WorkerStarter> starter;
  std::map<WorkerId, ProcessId> spawned;
  std::map<WorkerId, std::string> failed;
  std::map<WorkerId, ProcessEnd> ended;
};

}  // namespace rt::node
