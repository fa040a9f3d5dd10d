// Stores that run in threads of their own and clients on PollLoops, over real sockets within the
// test's process.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/rng.h"
#include "common/net/asio_loop.h"
#include "common/net/poll_loop.h"
#include "common/rpc/client.h"
#include "common/rpc/preamble.h"
#include "daemons/object_store/client/store_client.h"
#include "daemons/object_store/service/store_service.h"

namespace rt::store {

constexpr int64_t kMiB = 1 << 20;

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "store-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline NodeId node_id(uint64_t n) {
  Rng rng(5000 + n);
  return NodeId::random(rng);
}

inline WorkerId worker_id(uint64_t n) {
  Rng rng(9000 + n);
  return WorkerId::random(rng);
}

inline ObjectId object_id(uint32_t n, uint32_t job = 1) {
  return make_object_id(make_task_id(n, job_id_from_int(job)), kPutIndexBase + n);
}

inline Settings test_settings() {
  Settings settings;
  settings.create_wait_ms = 200;
  settings.seal_grace_ms = 200;
  settings.min_object_store_memory = 0;
  return settings;
}

// One node: its store, and a front door that, like a node-manager, hands connections with the
// preamble "store" on to it.
class Store {
 public:
  Store(const std::string& socket, int64_t capacity, uint64_t node = 0,
        Settings settings = test_settings(), const std::string& directory = "")
      : socket_(socket), node_(node_id(node)), settings_(std::move(settings)) {
    std::promise<void> ready;
    thread_ = std::thread([this, &ready, capacity, directory] {
      net::AsioLoop loop;
      auto arena = Arena::create({directory, capacity, 0});
      RT_CHECK(arena);
      StoreService::Options options;
      options.identity.role = "object_store";
      options.identity.token = "secret";
      options.node = node_;
      StoreService service(loop, settings_, std::move(*arena), std::move(options));
      RT_CHECK(service.listen(net::Address::unix_socket(socket_)));
      rpc::ServerOptions door_options;
      door_options.identity.role = "node_manager";
      door_options.identity.token = "secret";
      door_options.on_foreign = [&](const rpc::Preamble& preamble, int fd, bool) {
        if (preamble.target != "store") return false;
        rpc::hand_off(loop, socket_, fd, [](Status) {});
        return true;
      };
      rpc::Server door(loop, std::move(door_options));
      RT_CHECK(door.listen(net::Address::tcp("127.0.0.1", 0)));
      port_ = door.port();
      loop_ = &loop;
      service_ = &service;
      ready.set_value();
      loop.run();
    });
    ready.get_future().wait();
  }
  ~Store() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
  }
  // Runs `what` in the store's thread and waits until it has returned.
  void run(const std::function<void(StoreService&)>& what) {
    std::promise<void> done;
    loop_->post([&] {
      what(*service_);
      done.set_value();
    });
    done.get_future().wait();
  }
  const std::string& socket() const { return socket_; }
  Location location(int64_t size = 0) const { return {node_, "127.0.0.1", port_, size}; }

 private:
  std::string socket_;
  NodeId node_;
  Settings settings_;
  int port_ = 0;
  net::AsioLoop* loop_ = nullptr;
  StoreService* service_ = nullptr;
  std::thread thread_;
};

// A client with a loop of its own, used from the test's thread.
class TestClient {
 public:
  TestClient(Store& store, uint64_t worker, Settings settings = test_settings())
      : settings_(std::move(settings)), owner(worker_id(worker)) {
    StoreClient::Options options;
    options.socket_path = store.socket();
    options.identity.role = "worker";
    options.worker_id = owner;
    options.job_id = job_id_from_int(1);
    options.pid = ::getpid();
    auto attached = StoreClient::attach(loop, settings_, options, 60'000'000);
    EXPECT_TRUE(attached) << attached.error().message;
    if (attached) client = std::move(*attached);
  }
  void run_until(const std::function<bool()>& done) {
    net::PollLoop::Ready ready;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(70);
    while (!done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing happened for 70 s";
      loop.flush_all();
      loop.wait(ready, 100'000);
      loop.dispatch(ready);
    }
  }
  Result<Allocation> create(const ObjectId& id, int64_t size) {
    bool done = false;
    Result<Allocation> result = make_error(Code::kInternal, "");
    client->create(id, size, owner, [&](Result<Allocation> allocation) {
      result = std::move(allocation);
      done = true;
    });
    run_until([&] { return done; });
    return result;
  }
  Result<OwnedBytes> put(const ObjectId& id, Bytes data) {
    auto allocation = create(id, static_cast<int64_t>(data.size()));
    if (!allocation) return allocation.error();
    copy_large(allocation->memory.data(), data.data(), data.size(),
               static_cast<size_t>(settings_.parallel_copy_bytes));
    OwnedBytes view = client->seal(id, *allocation, owner);
    loop.flush_all();
    return view;
  }
  Result<OwnedBytes> get(const ObjectId& id, std::vector<Location> locations = {},
                         int64_t timeout_us = -1) {
    bool done = false;
    Result<OwnedBytes> result = make_error(Code::kInternal, "");
    client->get({{id, std::move(locations)}}, timeout_us, [&](std::vector<Result<OwnedBytes>> got) {
      result = std::move(got.at(0));
      done = true;
    });
    run_until([&] { return done; });
    return result;
  }
  void flush() { loop.flush_all(); }

  net::PollLoop loop;
  Settings settings_;
  WorkerId owner;
  std::unique_ptr<StoreClient> client;
};

inline std::vector<uint8_t> pattern(size_t n, uint64_t seed = 1) {
  std::vector<uint8_t> bytes(n);
  Rng rng(seed);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word = rng.next();
    std::memcpy(&bytes[i], &word, 8);
  }
  for (; i < n; i++) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}

inline bool same(Bytes a, Bytes b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

inline proto::StoreStats stats_of(Store& store) {
  rpc::Identity me;
  me.role = "client";
  auto client = rpc::SyncClient::connect({net::Address::unix_socket(store.socket()), "self", {}},
                                         me, 60'000'000);
  RT_CHECK(client);
  auto stats = (*client)->call(&proto::ObjectStoreService::Stub::GetStats, proto::Empty());
  RT_CHECK(stats);
  return *stats;
}

// Polls the store's statistics for up to a minute until `holds`, because messages of other
// connections arrive at any time.
inline testing::AssertionResult eventually(
    Store& store, const std::function<bool(const proto::StoreStats&)>& holds) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  proto::StoreStats stats;
  do {
    stats = stats_of(store);
    if (holds(stats)) return testing::AssertionSuccess();
  } while (std::chrono::steady_clock::now() < deadline);
  return testing::AssertionFailure() << stats.ShortDebugString();
}

}  // namespace rt::store
