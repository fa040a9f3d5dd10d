// A NodeSink that records the decisions of the core. A test takes those it expects and ends by
// asserting that none is left.
#pragma once

#include <fmt/core.h>

#include <deque>
#include <string>
#include <vector>

#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

class RecordingSink final : public NodeSink {
 public:
  struct Grant {
    OwnerId owner;
    proto::LeaseGrant message;
  };
  struct Revoke {
    OwnerId owner;
    std::vector<uint64_t> leases;
  };
  struct Redirect {
    OwnerId owner;
    proto::LeaseRedirect message;
  };
  struct Notice {
    OwnerId owner;
    proto::LeaseNotice message;
  };
  struct Spawn {
    WorkerId id;
    WorkerKind kind;
  };
  struct Created {
    ActorId id;
    int64_t epoch;
    proto::CreateActorReply reply;
  };
  struct Prepared {
    GroupId group;
    int64_t epoch;
    proto::PrepareBundlesReply reply;
  };
  struct Died {
    WorkerId id;
    proto::ExitInfo info;
  };

  void grant(OwnerId owner, const proto::LeaseGrant& m) override {
    last_answer = m.lease_id();
    grants.push_back({owner, m});
  }
  void revoke(OwnerId owner, const proto::LeaseRevoke& m) override {
    revokes.push_back({owner, {m.lease_ids().begin(), m.lease_ids().end()}});
  }
  void redirect(OwnerId owner, const proto::LeaseRedirect& m) override {
    last_answer = m.answer();
    redirects.push_back({owner, m});
  }
  void notice(OwnerId owner, const proto::LeaseNotice& m) override {
    notices.push_back({owner, m});
  }
  void spawn_worker(const WorkerId& id, const WorkerKind& kind) override {
    spawns.push_back({id, kind});
  }
  void kill_worker(const WorkerId& id) override { kills.push_back(id); }
  void ask_exit(const WorkerId& id, const proto::KillWorkerRequest&) override {
    exits.push_back(id);
  }
  void start_actor(const WorkerId& id, const proto::CreateActorRequest& request) override {
    starts.push_back(id);
    last_gpus.assign(request.gpu_ids().begin(), request.gpu_ids().end());
  }
  void actor_created(const ActorId& id, int64_t epoch,
                     const proto::CreateActorReply& reply) override {
    created.push_back({id, epoch, reply});
  }
  void actor_died(const proto::ActorDied& m) override { actor_deaths.push_back(m); }
  void bundles_prepared(const GroupId& group, int64_t epoch,
                        const proto::PrepareBundlesReply& reply) override {
    prepared.push_back({group, epoch, reply});
  }
  void worker_died(const WorkerId& id, const proto::ExitInfo& info) override {
    deaths.push_back({id, info});
  }
  void resources_changed() override { ++changes; }

  template <class T>
  static T take(std::deque<T>& queue) {
    RT_CHECK(!queue.empty());
    T first = std::move(queue.front());
    queue.pop_front();
    return first;
  }
  // Lists the decisions that the test did not take, for EXPECT_EQ(sink.rest(), "").
  std::string rest() const {
    std::string text;
    auto add = [&](const char* what, size_t n) {
      if (n > 0) text += fmt::format("{} {} ", n, what);
    };
    add("grants", grants.size()), add("revokes", revokes.size()),
        add("redirects", redirects.size()), add("notices", notices.size());
    add("spawns", spawns.size()), add("kills", kills.size()), add("exits", exits.size()),
        add("starts", starts.size());
    add("created", created.size()), add("actor deaths", actor_deaths.size()),
        add("deaths", deaths.size());
    add("prepared", prepared.size());
    return text;
  }

  std::deque<Grant> grants;
  std::deque<Revoke> revokes;
  std::deque<Redirect> redirects;
  std::deque<Notice> notices;
  std::deque<Spawn> spawns;
  std::deque<WorkerId> kills, exits, starts;
  std::vector<std::string> last_gpus;  // The GPUs of the actor that was started last.
  std::deque<Created> created;
  std::deque<proto::ActorDied> actor_deaths;
  std::deque<Died> deaths;
  std::deque<Prepared> prepared;
  int changes = 0;
  uint64_t last_answer = 0;  // The number of the last grant or redirect.
};

}  // namespace rt::node
