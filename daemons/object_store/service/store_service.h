// The object store as a service: turns requests into events of StoreCore and its decisions into
// replies.
//
// Local clients (Unix socket) may call every method after Attach. Stores of other nodes (TCP, role
// object_store, token checked by rpc::Server) may call only Pull, Free and GetStats. When a
// connection ends, its client ends. Everything runs in the loop's thread, except that Reserver's
// thread reserves pages. The service must be destroyed before the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "common/config/settings.h"
#include "common/net/core_driver.h"
#include "common/net/loop.h"
#include "common/proto/object_store.pb.h"
#include "common/rpc/server.h"
#include "daemons/object_store/core/held_calls.h"
#include "daemons/object_store/core/store_core.h"
#include "daemons/object_store/service/fetcher.h"
#include "daemons/object_store/service/peers.h"
#include "daemons/object_store/shm/arena.h"
#include "daemons/object_store/shm/reserver.h"
#include "observability/profile_service/profile_service.h"

namespace rt::store {

class StoreService final : public proto::ObjectStoreService, private StoreSink {
 public:
  struct Options {
    rpc::Identity identity;  // The role is object_store; on TCP its token is demanded.
    NodeId node;             // This node's id, as it appears in locations.
    // Called when a client has called Stop or the node-manager is gone: the receiver must stop the
    // loop.
    std::function<void()> on_stop;
  };
  StoreService(net::Loop& loop, const Settings& settings, std::unique_ptr<Arena> arena,
               Options options);
  ~StoreService() override;

  Status listen(const net::Address& address) { return server_->listen(address); }
  Status listen_fd(int fd) { return server_->listen_fd(fd); }
  int port() const { return server_->port(); }

  // For tests: checks that the whole state is consistent.
  void check_invariants() const {
    driver_.core().check_invariants();
    fetcher_.check_invariants();
  }

 private:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;

  void Attach(Controller* controller, const proto::AttachRequest* request,
              proto::AttachReply* reply, Closure* done) override;
  void Create(Controller* controller, const proto::CreateRequest* request,
              proto::CreateReply* reply, Closure* done) override;
  void LeaseExtent(Controller* controller, const proto::LeaseExtentRequest* request,
                   proto::LeaseExtentReply* reply, Closure* done) override;
  void Seal(Controller* controller, const proto::SealRequest* request, proto::Empty* reply,
            Closure* done) override;
  void Abort(Controller* controller, const proto::ReleaseRequest* request, proto::Empty* reply,
             Closure* done) override;
  void Get(Controller* controller, const proto::GetRequest* request, proto::GetReply* reply,
           Closure* done) override;
  void Release(Controller* controller, const proto::ReleaseRequest* request, proto::Empty* reply,
               Closure* done) override;
  void Free(Controller* controller, const proto::FreeRequest* request, proto::Empty* reply,
            Closure* done) override;
  void Contains(Controller* controller, const proto::ContainsRequest* request,
                proto::ContainsReply* reply, Closure* done) override;
  void Pull(Controller* controller, const proto::PullRequest* request, proto::PullReply* reply,
            Closure* done) override;
  void FreeOwnedBy(Controller* controller, const proto::OwnersGone* request, proto::Empty* reply,
                   Closure* done) override;
  void GetStats(Controller* controller, const proto::Empty* request, proto::StoreStats* reply,
                Closure* done) override;
  void Stop(Controller* controller, const proto::Empty* request, proto::Empty* reply,
            Closure* done) override;

  // The methods of StoreSink.
  void reply_create(ClientId client, CallId call, Result<std::vector<int64_t>> offsets) override;
  void reply_lease(ClientId client, CallId call, Result<LeasedExtent> extent) override;
  void reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) override;
  void disconnect(ClientId client, Error why) override;
  void reserve(int64_t up_to) override;
  void fetch(const ObjectId& id, const std::vector<Source>& sources, bool first) override;
  void tell(const Notice& notice) override;

  struct Client {
    ClientId id = 0;
    std::weak_ptr<rpc::Connection> connection;
    bool is_local = false;
    bool is_store = false;
    bool is_node_manager = false;
    bool attached = false;
  };
  // The RPC layer keeps all of these until done->Run().
  struct Reply {
    rpc::ServerCall* call = nullptr;
    std::variant<proto::CreateReply*, proto::LeaseExtentReply*, proto::GetReply*, proto::PullReply*>
        message;
    Closure* done = nullptr;
  };
  using Held = HeldCalls<Reply>;
  enum class Who { kAttached, kLocal, kLocalOrStore, kAnyone };

  void on_connection(const std::shared_ptr<rpc::Connection>& connection);
  void on_closed(rpc::Connection* connection);
  bool on_foreign(const rpc::Preamble& preamble, int fd, bool is_unix);
  // Returns the calling client if it may call the method. Otherwise fails and finishes the call
  // and returns null.
  Client* admit(Controller* controller, Who who, Closure* done);
  using GiveUp = void (*)(StoreCore& core, ClientId client, const std::vector<ObjectId>& ids,
                          Now now, const std::vector<ObjectId>& told);
  void give_up(Controller* controller, const proto::ReleaseRequest& request, Closure* done,
               GiveUp event);
  void reject(Controller* controller, Closure* done, Error error);
  // Closes the connection of a client that broke the protocol with a one-way message.
  void close(Client& client, const Error& why);
  void finish_pull(const std::optional<Held::Call>& pull, Result<Fetcher::Piece> piece);
  Fetcher::Piece pinned_piece(const Held::Call& pull, const GetAnswer& answer);
  void release_sent();

  // Posted tasks that run after the destructor see it expired.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  net::Loop& loop_;
  const Settings& settings_;
  const Options options_;
  std::unique_ptr<Arena> arena_;
  net::CoreDriver<StoreCore> driver_;
  Peers peers_;
  Fetcher fetcher_;
  Reserver reserver_;
  profile::ProfileServer profile_{loop_};
  std::unique_ptr<rpc::Server> server_;

  std::unordered_map<rpc::Connection*, Client> clients_;
  std::unordered_map<ClientId, rpc::Connection*> by_id_;
  Held held_;
  ClientId next_client_ = kFirstClient;
  // Transfer pins of objects whose bytes the socket has taken.
  std::vector<ObjectId> sent_;
};

}  // namespace rt::store
