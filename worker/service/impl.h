// The inside of Worker: what every part of it shares, and one object of each part, which
// worker/README.md lists. This struct itself only makes them and says which of them calls which
// (wiring.cc), starts and stops (startup.cc), and hands what arrives to those it is for
// (dispatch.cc). No part knows it.
#pragma once

#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "common/rpc/client.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/actor_client.h"
#include "worker/service/current_task.h"
#include "worker/service/execution.h"
#include "worker/service/gets.h"
#include "worker/service/groups.h"
#include "worker/service/head_connection.h"
#include "worker/service/head_questions.h"
#include "worker/service/lease_client.h"
#include "worker/service/link.h"
#include "worker/service/listing.h"
#include "worker/service/lock.h"
#include "worker/service/node_directory.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/services.h"
#include "worker/service/shared.h"
#include "worker/service/streams.h"
#include "worker/service/submission.h"
#include "worker/service/travelling_refs.h"
#include "worker/worker.h"

namespace rt::worker {

struct Worker::Impl {
  // Implemented in wiring.cc.

  explicit Impl(Options options);
  // The answers to what parts ask of others, whom they do not know.
  Pump::Hooks pump_hooks();
  NodeDirectory::Hooks node_hooks();
  HeadConnection::Hooks head_hooks();
  PeerLinks::Hooks peer_hooks();
  Objects::Hooks object_hooks();
  Execution::Hooks execution_hooks();

  // Implemented in startup.cc.

  Status start() EXCLUDES(worker_mutex);
  // The steps of start(): to the node-manager, registration there, and what its reply says.
  Status connect(WorkerLock& lock, int64_t deadline_us) REQUIRES(worker_mutex);
  Result<proto::RegisterWorkerReply> enroll(WorkerLock& lock) REQUIRES(worker_mutex);
  void registered(const proto::RegisterWorkerReply& reply) REQUIRES(worker_mutex);
  Status finish_start() REQUIRES(worker_mutex);
  void adopt_job(const proto::JobConfig& job) REQUIRES(worker_mutex);
  void stop() EXCLUDES(worker_mutex);
  void on_node_manager_lost(const Error& why) REQUIRES(worker_mutex);
  // Whether others need this process even though it has nothing to execute.
  bool is_needed() const REQUIRES(worker_mutex);

  // Implemented in dispatch.cc.

  void link_opened(const std::shared_ptr<Link>& link) REQUIRES(worker_mutex);
  void link_closed(const std::shared_ptr<Link>& link, bool peer_gone) REQUIRES(worker_mutex);
  void on_flat(const std::shared_ptr<Link>& link, uint32_t type, Bytes body) REQUIRES(worker_mutex);
  void on_head_event(const proto::HeadEvent& event) REQUIRES(worker_mutex);

  Shared shared;
  Notices notices;
  Pump pump;

  // Connections, which use the services and are destroyed before them.
  Services services;
  NodeDirectory nodes;
  HeadConnection head;
  PeerLinks peers;
  HeadQuestions head_questions;

  // Objects, and tasks as their owner has them.
  Groups groups;
  Objects objects;
  Gets gets;
  TravellingRefs travelling_refs;
  Submission submission;
  Streams streams;
  LeaseClient leases;
  Recorder recorder;
  ActorClient actor_client;

  // The executing half.
  Execution execution;

  Listing listing;
};

}  // namespace rt::worker
