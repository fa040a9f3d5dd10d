// A client of the head: the part of a driver that puts functions and packages, or a tool, which
// writes data, uploads packages and submits jobs. All that it asks and hears is recorded.
#pragma once

#include <functional>
#include <string>

#include "tests/sim/head_records.h"
#include "tests/sim/owner_head.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimClient final : public Process {
 public:
  SimClient(World& world, int host) : Process(world.clock, world.network, host), world_(world) {}

  // ---- data, under the namespace `ns`
  void put(const std::string& ns, const std::string& key, const std::string& value, bool overwrite,
           const JobId& job);
  void erase(const std::string& ns, const std::string& key);
  // `data`: no job keeps the key, and the answer is checked.
  void get(const std::string& ns, const std::string& key, bool data);
  void list(const std::string& ns, const std::string& prefix);

  // Uploads a package in so many pieces, unless it is there; the first error ends that.
  struct Package {
    std::string name;
    int pieces = 1;
    int64_t piece_bytes = 1;
    JobId job;  // that keeps it; nil: none
  };
  void upload(const Package& package);

  // ---- jobs
  void submit(JobPlan plan, const ResourceSet& resources);
  void look_at(size_t job);
  void stop(size_t job);
  void remove(size_t job);

 private:
  template <class T>
  using Answer = Channel::Answer<T>;
  // Asks the head, over its connection, or says why there is none.
  template <class T>
  void ask(const char* what, std::function<void(HeadRecords&, Answer<T>)> serve, Answer<T> done);
  OwnerHead::Environment head_environment();
  void send_piece(const Package& package, int piece);

  World& world_;
  OwnerHead head_{world_, head_environment()};
};

}  // namespace rt::sim
