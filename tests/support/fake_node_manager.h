// A node-manager inside the test's process, for tests of the worker library. It registers drivers
// and workers and grants leases on the registered workers in the order of the demands. It has no
// head and no object store.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/ids.h"
#include "common/net/asio_loop.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"
#include "common/rpc/server.h"

namespace rt::test {

class FakeNodeManager final : public proto::NodeManagerService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;

  explicit FakeNodeManager(const std::string& directory) : socket_(directory + "/raylet") {
    rpc::ServerOptions options;
    options.identity.role = "node_manager";
    options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
      connection->add_service(this);
      rpc::Connection* raw = connection.get();
      connection->set_closed_handler([this, raw](const Error&) {
        std::erase_if(workers_, [raw](const auto& w) { return w.second.connection.get() == raw; });
        std::erase_if(demands_, [raw](const auto& d) { return d.connection.get() == raw; });
      });
    };
    server_ = std::make_unique<rpc::Server>(loop_, std::move(options));
    RT_CHECK(server_->listen(net::Address::unix_socket(socket_)));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FakeNodeManager() override {
    loop_.stop();
    thread_.join();
    server_.reset();  // The closed handlers of its connections use the members declared below it.
  }
  const std::string& socket() const { return socket_; }
  // Drivers are told this when they register.
  static constexpr char kGreeting[] = "a notice for the driver";

  void RegisterWorker(Controller* controller, const proto::RegisterWorkerRequest* request,
                      proto::RegisterWorkerReply* reply, Closure* done) override {
    reply->set_node_id(std::string(28, 'n'));
    JobId job = job_id_from_int(1);
    reply->set_job_id(request->is_driver() ? job.binary() : "");
    reply->set_ray_namespace("test");
    reply->set_ip("127.0.0.1");
    if (!request->is_driver()) {
      Worker w;
      w.connection = rpc::server_call(controller).connection();
      w.address.set_node_id(reply->node_id());
      w.address.set_worker_id(request->worker_id());
      w.address.set_ip("127.0.0.1");
      w.address.set_socket_path(request->socket_path());
      w.pid = request->pid();
      workers_[request->worker_id()] = w;
    } else {
      // It arrives before the reply, as what a node-manager knows of other nodes does.
      proto::LeaseNotice notice;
      notice.set_message(kGreeting);
      rpc::notify(*rpc::server_call(controller).connection(),
                  &proto::NodeClientService::Stub::OnLeaseNotice, notice);
    }
    done->Run();
    serve();
  }
  void SetLeaseDemand(Controller* controller, const proto::LeaseDemand* request, proto::Empty*,
                      Closure* done) override {
    auto connection = rpc::server_call(controller).connection();
    std::erase_if(demands_, [&](const Demand& d) {
      return d.connection == connection && d.class_id == request->class_id();
    });
    if (request->want() > 0) demands_.push_back({connection, request->class_id(), request->want()});
    done->Run();
    serve();
  }
  void ReturnLease(Controller*, const proto::LeaseReturn* request, proto::Empty*,
                   Closure* done) override {
    for (auto& [id, w] : workers_) {
      if (w.lease == request->lease_id()) w.lease = 0;
    }
    done->Run();
    serve();
  }
  void GetWorkerExit(Controller*, const proto::WorkerExitRequest*, proto::WorkerExitReply* reply,
                     Closure* done) override {
    reply->set_exited(true);
    reply->mutable_info()->set_kind(proto::ExitInfo::SIGNALED);
    reply->mutable_info()->set_signal(9);
    done->Run();
  }
  void SetBlocked(Controller*, const proto::Blocked*, proto::Empty*, Closure* done) override {
    done->Run();
  }
  void Leaving(Controller*, const proto::Empty*, proto::Empty*, Closure* done) override {
    done->Run();
  }
  void AddTaskEvents(Controller*, const proto::TaskEventBatch* batch, proto::Empty*,
                     Closure* done) override {
    task_events += batch->count();
    done->Run();
  }
  std::atomic<int64_t> task_events{0};

 private:
  struct Worker {
    std::shared_ptr<rpc::Connection> connection;
    proto::WorkerAddress address;
    int pid = 0;
    uint64_t lease = 0;
  };
  struct Demand {
    std::shared_ptr<rpc::Connection> connection;
    uint64_t class_id;
    int want;
  };
  void serve() {
    for (auto& [id, w] : workers_) {
      if (w.lease || demands_.empty()) continue;
      Demand& demand = demands_.front();
      w.lease = ++next_lease_;
      proto::LeaseGrant grant;
      grant.set_class_id(demand.class_id);
      grant.set_lease_id(w.lease);
      *grant.mutable_worker() = w.address;
      grant.set_pid(w.pid);
      rpc::notify(*demand.connection, &proto::NodeClientService::Stub::OnLeaseGrant, grant);
      if (--demand.want == 0) demands_.pop_front();
    }
  }

  std::string socket_;
  net::AsioLoop loop_;
  std::unique_ptr<rpc::Server> server_;
  std::map<std::string, Worker> workers_;
  std::deque<Demand> demands_;
  uint64_t next_lease_ = 0;
  std::thread thread_;
};

}  // namespace rt::test
