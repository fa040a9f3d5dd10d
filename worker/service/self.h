// How this process names itself to others: its address as an owner, and the identity with which it
// opens and accepts connections.
#pragma once

#include <string>

#include "common/base/rng.h"
#include "common/proto/common.pb.h"
#include "common/rpc/connection.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Self {
 public:
  // Both must outlive this object.
  Self(const Options& options, const Context& context) : options_(options), context_(context) {}

  // The socket at which others reach this process.
  void set_socket_path(const std::string& path) REQUIRES(worker_mutex) {
    address_.set_socket_path(path);
  }
  // The node-manager has registered this process, as `context` says.
  void registered(const std::string& cluster_id) REQUIRES(worker_mutex) {
    cluster_id_ = cluster_id;
    address_.set_node_id(context_.node_id.binary());
    address_.set_worker_id(context_.worker_id.binary());
    address_.set_ip(context_.node_ip);
    address_.set_port(context_.node_manager_port);
    job_changed();
  }
  // The job in `options` has changed.
  void job_changed() REQUIRES(worker_mutex) {
    serialized_job_ = options_.job_config.SerializeAsString();
  }

  // The task id in the ids of objects that this process puts.
  const TaskId& put_task() const REQUIRES(worker_mutex) { return put_task_; }
  void set_put_task(const TaskId& task) REQUIRES(worker_mutex) { put_task_ = task; }
  // Makes ids that no other process makes.
  Rng& rng() REQUIRES(worker_mutex) { return rng_; }

  const proto::WorkerAddress& address() const REQUIRES(worker_mutex) { return address_; }
  // For any thread once the process has started, because it never changes from there on.
  const std::string& cluster_id() const { return cluster_id_; }
  rpc::Identity identity() const REQUIRES(worker_mutex) {
    rpc::Identity me;
    me.role = options_.is_driver ? "driver" : "worker";
    me.id = context_.worker_id.binary();
    me.cluster_id = cluster_id_;
    me.token = context_.token;
    me.job_config = serialized_job_;
    return me;
  }

 private:
  const Options& options_;
  const Context& context_;
  Rng rng_ GUARDED_BY(worker_mutex) = Rng::from_system();
  TaskId put_task_ GUARDED_BY(worker_mutex);
  proto::WorkerAddress address_ GUARDED_BY(worker_mutex);
  std::string cluster_id_;
  std::string serialized_job_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
