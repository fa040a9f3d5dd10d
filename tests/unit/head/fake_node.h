// A node-manager as the head sees it: a SyncClient that registers, serves NodeManagerService and
// records the calls and events it receives. Used from the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "common/base/fd.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"

namespace rt::head {

class FakeNode final : public proto::NodeManagerService, public proto::HeadClientService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  using Head = proto::HeadService::Stub;

  FakeNode(int port, const std::string& token, std::string id = std::string(28, 'n'))
      : id_(std::move(id)) {
    rpc::Identity me;
    me.role = "node_manager";
    me.id = id_;
    me.token = token;
    auto connected =
        rpc::SyncClient::connect({net::Address::tcp("127.0.0.1", port)}, me, 60'000'000);
    EXPECT_TRUE(connected) << connected.error().message;
    if (!connected) return;
    client = std::move(*connected);
    client->connection()->add_service(static_cast<proto::NodeManagerService*>(this));
    client->connection()->add_service(static_cast<proto::HeadClientService*>(this));
  }

  proto::RegisterNodeRequest registration() const {
    proto::RegisterNodeRequest request;
    request.mutable_node()->set_node_id(id_);
    request.mutable_node()->set_ip("127.0.0.1");
    request.mutable_node()->set_port(*net::bound_port(door_.get()));
    request.mutable_node()->set_is_head(true);
    (*request.mutable_node()->mutable_total()->mutable_units())["CPU"] = 40000;
    return request;
  }
  Result<proto::RegisterNodeReply> join() {
    return client->call(&Head::RegisterNode, registration());
  }
  proto::AddJobReply add_job() {
    proto::AddJobRequest request;
    request.set_node_id(id_);
    auto reply = client->call(&Head::AddJob, request);
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? *reply : proto::AddJobReply();
  }
  // Serves calls of the head until `done` returns true. Returns false if that took more than about
  // a minute.
  bool run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 12'000 && !done(); ++i) {
      bool never = false;
      client->run_until(never, 5'000);
    }
    return done();
  }

  void CreateActor(Controller*, const proto::CreateActorRequest* request,
                   proto::CreateActorReply* reply, Closure* done) override {
    created.push_back(*request);
    reply->set_ok(true);
    reply->mutable_address()->set_node_id(id_);
    reply->mutable_address()->set_worker_id(std::string(28, 'w'));
    reply->set_pid(4711);
    done->Run();
  }
  void KillWorker(Controller*, const proto::KillWorkerRequest* request, proto::Empty*,
                  Closure* done) override {
    killed.push_back(*request);
    done->Run();
  }
  void PrepareBundles(Controller*, const proto::PrepareBundlesRequest* request,
                      proto::PrepareBundlesReply* reply, Closure* done) override {
    prepared.push_back(*request);
    reply->set_ok(true);
    done->Run();
  }
  void ReturnBundles(Controller*, const proto::ReturnBundlesRequest* request, proto::Empty*,
                     Closure* done) override {
    returned.push_back(*request);
    done->Run();
  }
  void StartJobProcess(Controller*, const proto::StartJobProcessRequest* request, proto::Empty*,
                       Closure* done) override {
    started.push_back(*request);
    done->Run();
  }
  void StopJobProcess(Controller*, const proto::SubmittedJobRequest*, proto::StopJobReply* reply,
                      Closure* done) override {
    reply->set_stopped(true);
    done->Run();
  }
  void ReadJobLog(Controller*, const proto::ReadJobLogRequest* request,
                  proto::ReadJobLogReply* reply, Closure* done) override {
    ++log_reads;
    auto offset = std::min<size_t>(static_cast<size_t>(request->offset()), log.size());
    reply->set_data(log.substr(offset, static_cast<size_t>(request->max_bytes())));
    reply->set_next_offset(static_cast<int64_t>(offset + reply->data().size()));
    reply->set_size(static_cast<int64_t>(log.size()));
    done->Run();
  }
  void RemoveJobLog(Controller*, const proto::SubmittedJobRequest* request, proto::Empty*,
                    Closure* done) override {
    removed_logs.push_back(request->submission_id());
    done->Run();
  }
  void OnHeadEvent(Controller*, const proto::HeadEvent* event, proto::Empty*,
                   Closure* done) override {
    events.MergeFrom(*event);
    done->Run();
  }
  const std::string& id() const { return id_; }

  std::unique_ptr<rpc::SyncClient> client;
  std::vector<proto::CreateActorRequest> created;
  std::vector<proto::KillWorkerRequest> killed;
  std::vector<proto::PrepareBundlesRequest> prepared;
  std::vector<proto::ReturnBundlesRequest> returned;
  std::vector<proto::StartJobProcessRequest> started;
  proto::HeadEvent events;
  std::vector<std::string> removed_logs;
  std::string log;
  int log_reads = 0;

 private:
  std::string id_;
  // Listens at the registered port, because the head checks that it can be reached.
  Fd door_{*net::listen_on(net::Address::tcp("127.0.0.1", 0))};
};

}  // namespace rt::head
