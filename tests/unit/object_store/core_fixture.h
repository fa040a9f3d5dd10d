// The core of the object store with a recording sink and three clients.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <set>

#include "common/base/rng.h"
#include "daemons/object_store/core/store_core.h"

namespace rt::store {

// Records the decisions of the core. A test takes those it expects; none may be left at its end.
class Recorder final : public StoreSink {
 public:
  struct Created {
    ClientId client;
    CallId call;
    Result<std::vector<int64_t>> offsets;
  };
  struct Leased {
    ClientId client;
    CallId call;
    Result<LeasedExtent> extent;
  };
  struct Got {
    ClientId client;
    CallId call;
    std::vector<GetAnswer> answers;
  };
  struct Closed {
    ClientId client;
    Error why;
  };
  struct Fetch {
    ObjectId id;
    std::vector<Source> sources;
    bool first = false;
  };

  void reply_create(ClientId client, CallId call, Result<std::vector<int64_t>> offsets) override {
    created.push_back({client, call, std::move(offsets)});
  }
  void reply_lease(ClientId client, CallId call, Result<LeasedExtent> extent) override {
    leased.push_back({client, call, std::move(extent)});
  }
  void reply_get(ClientId client, CallId call, std::vector<GetAnswer> answers) override {
    got.push_back({client, call, std::move(answers)});
  }
  void disconnect(ClientId client, Error why) override {
    closed.push_back({client, std::move(why)});
  }
  void reserve(int64_t up_to) override { reserves.push_back(up_to); }
  void fetch(const ObjectId& id, const std::vector<Source>& sources, bool first) override {
    fetches.push_back({id, sources, first});
  }
  void tell(const Notice& notice) override {
    if (notice.type == Notice::kWaitsForRoom) waiting.insert(notice.ticket);
    if (notice.type == Notice::kHasRoom) waiting.erase(notice.ticket);
  }

  bool is_empty() const {
    return created.empty() && leased.empty() && got.empty() && closed.empty() && fetches.empty() &&
           reserves.empty();
  }

  std::deque<Created> created;
  std::deque<Leased> leased;
  std::deque<Got> got;
  std::deque<Closed> closed;
  std::deque<Fetch> fetches;
  std::deque<int64_t> reserves;
  std::multiset<Ticket> waiting;  // The tickets whose clients were told that they wait.
};

template <class T>
T take(std::deque<T>& queue) {
  RT_CHECK(!queue.empty());
  T first = std::move(queue.front());
  queue.pop_front();
  return first;
}

constexpr int64_t kMiB = 1 << 20;
constexpr ClientId kAlice = 100, kBob = 101, kCarol = 102;

inline ObjectId object(uint32_t n, uint32_t job = 1) {
  return make_object_id(make_task_id(n, job_id_from_int(job)), 1);
}
inline WorkerId worker(ClientId client) {
  Rng rng(client);
  return WorkerId::random(rng);
}
inline NodeId node(uint64_t n) {
  Rng rng(1000 + n);
  return NodeId::random(rng);
}

class StoreCoreTest : public ::testing::Test {
 protected:
  StoreCoreTest() { restart(16 * kMiB); }
  ~StoreCoreTest() override {
    core->check_invariants();
    EXPECT_TRUE(sink.is_empty());
  }

  void restart(int64_t capacity) {
    StoreCore::Options options;
    options.capacity = capacity;
    options.node = node(0);
    core.emplace(options, sink);
    for (ClientId client : {kAlice, kBob, kCarol})
      ASSERT_TRUE(
          core->attach(client, worker(client), job_id_from_int(1), static_cast<int>(client)));
    core->reserve_ahead(capacity);
    core->on_reserved(take(sink.reserves), Status(), now);
  }
  int64_t create(ClientId client, const ObjectId& id, int64_t size) {
    core->create(client, 1, {{id, size, worker(client)}}, false, now);
    auto created = take(sink.created);
    EXPECT_TRUE(created.offsets) << created.offsets.error().message;
    return created.offsets->at(0);
  }
  Error create_error(ClientId client, const ObjectId& id, int64_t size) {
    core->create(client, 1, {{id, size, worker(client)}}, false, now);
    return take(sink.created).offsets.error();
  }
  int64_t put(ClientId client, const ObjectId& id, int64_t size) {
    int64_t offset = create(client, id, size);
    core->seal(client, {{id, offset, size, 0, worker(client)}}, {}, now);
    return offset;
  }
  // The result of a task of Carol's.
  void seal_for_carol(ClientId client, const ObjectId& id) {
    core->create(client, 1, {{id, 100, worker(kCarol)}}, false, now);
    const int64_t offset = take(sink.created).offsets->at(0);
    core->seal(client, {{id, offset, 100, 0, worker(kCarol)}}, {}, now);
  }
  LeasedExtent lease(ClientId client, int64_t size = 256 * 1024) {
    core->lease_extent(client, 2, size, now);
    return *take(sink.leased).extent;
  }
  GetAnswer get_now(ClientId client, const ObjectId& id) {
    core->get(client, 3, {{id, {}}}, 0, now, 0);
    return take(sink.got).answers.at(0);
  }
  void pass(int64_t us) {
    now.steady_us += us;
    core->tick(now);
  }

  Recorder sink;
  Now now{1'000'000, 0};
  std::optional<StoreCore> core;
};

}  // namespace rt::store
