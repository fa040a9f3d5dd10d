// Measures a node's object store: the bandwidth of puts (cold, warm; one and two threads; data and
// untouched zeros) and the rates of small puts and gets. The store runs in a thread of this
// process; clients talk to it over its Unix socket, as workers do.
//   build/bin/store_bench [MiB of the large object, default 800]
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "common/base/rng.h"
#include "common/net/asio_loop.h"
#include "daemons/object_store/client/store_client.h"
#include "daemons/object_store/service/store_service.h"

namespace {

using namespace rt;
using namespace rt::store;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Bench {
  net::PollLoop loop;
  Settings settings;
  WorkerId owner;
  std::unique_ptr<StoreClient> client;
  uint32_t next = 0;

  ObjectId fresh_id() {
    return make_object_id(make_task_id(++next, job_id_from_int(1)), kPutIndexBase);
  }
  void run_until(const bool& done) {
    net::PollLoop::Ready ready;
    while (!done) {
      loop.flush_all();
      loop.wait(ready, 1'000'000);
      loop.dispatch(ready);
    }
  }
  Allocation create(const ObjectId& id, int64_t size) {
    bool done = false;
    Result<Allocation> result = make_error(Code::kInternal, "");
    client->create(id, size, owner, [&](Result<Allocation> allocation) {
      result = std::move(allocation);
      done = true;
    });
    run_until(done);
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().message.c_str());
      std::exit(1);
    }
    return *result;
  }
  double put_seconds(const uint8_t* data, size_t n, size_t parallel_from) {
    ObjectId id = fresh_id();
    double start = now_s();
    Allocation allocation = create(id, static_cast<int64_t>(n));
    copy_large(allocation.memory.data(), data, n, parallel_from);
    client->seal(id, allocation, owner);
    double seconds = now_s() - start;
    client->free({id}, {});
    loop.flush_all();
    return seconds;
  }
};

uint8_t* anonymous(size_t n) {
  return static_cast<uint8_t*>(
      ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

void report(const char* what, double value, const char* unit) {
  std::printf("%-58s %12.2f %s\n", what, value, unit);
}

// Runs a store for `socket` in a thread of its own.
class Server {
 public:
  Server(const std::string& socket, int64_t capacity, const Settings& settings) {
    std::promise<net::AsioLoop*> ready;
    auto loop = ready.get_future();
    thread_ = std::thread([&ready, socket, capacity, &settings] {
      net::AsioLoop loop;
      auto arena = Arena::create({"", capacity, 0});
      if (!arena) {
        std::fprintf(stderr, "%s\n", arena.error().message.c_str());
        std::exit(1);
      }
      Rng rng(1);
      StoreService::Options options;
      options.identity.role = "object_store";
      options.node = NodeId::random(rng);
      StoreService service(loop, settings, std::move(*arena), std::move(options));
      RT_CHECK(service.listen(net::Address::unix_socket(socket)));
      ready.set_value(&loop);
      loop.run();
    });
    loop_ = loop.get();
  }
  ~Server() {
    loop_->stop();
    thread_.join();
  }
  Server(const Server&) = delete;

 private:
  std::thread thread_;
  net::AsioLoop* loop_ = nullptr;
};

void attach(Bench& bench, const std::string& socket, const Settings& settings) {
  Rng rng(2);
  bench.owner = WorkerId::random(rng);
  StoreClient::Options options;
  options.socket_path = socket;
  options.identity.role = "driver";
  options.worker_id = bench.owner;
  options.job_id = job_id_from_int(1);
  options.pid = ::getpid();
  const double start = now_s();
  auto attached = StoreClient::attach(bench.loop, settings, options, 5'000'000);
  RT_CHECK(attached);
  bench.client = std::move(*attached);
  report("attach", (now_s() - start) * 1e3, "ms");
}

void measure_large_puts(Bench& bench, const uint8_t* data, const uint8_t* zeros, size_t n) {
  const double gb = static_cast<double>(n) / 1e9;
  report("put, cold (pages reserved and touched first), 2 threads",
         gb / bench.put_seconds(data, n, 1), "GB/s");
  for (auto [name, from] : {std::pair{"data", data}, std::pair{"untouched zeros", zeros}}) {
    for (auto [threads, parallel_from] : {std::pair{1, SIZE_MAX}, std::pair{2, size_t{1}}}) {
      std::vector<double> seconds;
      for (int i = 0; i < 9; i++) seconds.push_back(bench.put_seconds(from, n, parallel_from));
      std::sort(seconds.begin(), seconds.end());
      std::string what = std::string("put, warm, ") + name + ", " + std::to_string(threads) +
                         (threads == 1 ? " thread" : " threads");
      report(what.c_str(), gb / seconds[seconds.size() / 2], "GB/s");
    }
  }
  // Measures the bound: what the memory itself can do.
  ObjectId big = bench.fresh_id();
  Allocation warm = bench.create(big, static_cast<int64_t>(n));
  for (auto [name, from] : {std::pair{"memcpy of data, warm", data},
                            std::pair{"memcpy of untouched zeros, warm", zeros}}) {
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
      double begin = now_s();
      std::memcpy(warm.memory.data(), from, n);
      best = std::min(best, now_s() - begin);
    }
    report(name, gb / best, "GB/s");
  }
  bench.client->abort(big, warm);
}

void measure_small_puts(Bench& bench, const uint8_t* data) {
  for (size_t size : {size_t{1000}, size_t{150'000}, size_t{1'000'000}}) {
    int count = size > 500'000 ? 2000 : 20'000;
    double begin = now_s();
    for (int i = 0; i < count; i++) bench.put_seconds(data, size, SIZE_MAX);
    // When the store answers this request, it has handled all earlier ones.
    ObjectId last = bench.fresh_id();
    bench.client->abort(last, bench.create(last, 4 << 20));
    report(("put and free of " + std::to_string(size) + " bytes").c_str(),
           count / (now_s() - begin), "/s");
  }
}

void measure_gets(Bench& bench) {
  ObjectId id = bench.fresh_id();
  Allocation allocation = bench.create(id, 150'000);
  OwnedBytes view = bench.client->seal(id, allocation, bench.owner);
  constexpr int kGets = 200'000;
  double start = now_s();
  for (int i = 0; i < kGets; i++) bench.client->get({{id, {}}}, -1, [](auto) {});
  report("get of an object held already", kGets / (now_s() - start), "/s");
  view = {};
  constexpr int kAsked = 5000;
  start = now_s();
  for (int i = 0; i < kAsked; i++) {
    bool done = false;
    bench.client->get({{id, {}}}, -1, [&](auto) { done = true; });
    bench.run_until(done);
  }
  report("get of an object the daemon is asked for", kAsked / (now_s() - start), "/s");
}

}  // namespace

int main(int argc, char** argv) {
  size_t mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 800;
  size_t n = mib << 20;
  std::string pattern = (std::filesystem::temp_directory_path() / "store-bench-XXXXXX").string();
  std::string directory = ::mkdtemp(pattern.data());
  std::string socket = directory + "/store";
  Settings settings;
  {
    Server server(socket, static_cast<int64_t>(n) * 3, settings);
    Bench bench;
    attach(bench, socket, settings);
    const uint8_t* zeros = anonymous(n);
    uint8_t* data = anonymous(n);
    std::memset(data, 7, n);
    measure_large_puts(bench, data, zeros, n);
    measure_small_puts(bench, data);
    measure_gets(bench);
  }
  std::filesystem::remove_all(directory);
}
