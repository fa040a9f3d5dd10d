// Fetches with a sink that records every decision as a line of text, and a clock that the test
// moves. Chunks have 100 bytes, and two of an object are requested ahead.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemons/object_store/core/fetches.h"
#include "tests/unit/object_store/core_fixture.h"

namespace rt::store {

// A test takes the lines that it expects; none may be left at its end.
class FetchRecorder final : public FetchSink {
 public:
  void connect(FetchId fetch, const ObjectId&, const Source& source) override {
    add("connect {} to {}", fetch, source.ip);
  }
  void describe(FetchId fetch, const ObjectId&) override { add("describe {}", fetch); }
  void pull(const ChunkRequest& asked) override {
    add("pull {}: {}+{} to {}", asked.fetch, asked.range.offset, asked.range.size, asked.to);
  }
  void close(FetchId fetch, const Error& why) override { add("close {}: {}", fetch, why.message); }
  void source_failed(const ObjectId&, const std::string& source, const Error& why) override {
    add("{} failed: {}", source, why.message);
  }
  void create(FetchId fetch, const CreateItem& item) override {
    add("create {}: {} bytes", fetch, item.size);
  }
  void seal(const SealItem& item) override { add("seal at {}: {} bytes", item.offset, item.size); }
  void fail(const ObjectId&, const Error& why) override {
    last_error = why;
    add("fail");
  }
  void end(FetchId fetch, const ObjectId&, End how) override {
    constexpr const char* kNames[] = {"without room", "released", "aborted"};
    add("end {}: {}", fetch, kNames[static_cast<size_t>(how)]);
  }
  void serve(CallId reader, const FetchedPiece& piece) override {
    add("serve reader {}: {}+{} of {}", reader, piece.range.offset, piece.range.size,
        piece.total_size);
  }
  void refuse(CallId reader, Error why) override {
    add("refuse reader {}: {}", reader, code_name(why.code));
  }

  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  bool is_empty() const { return lines_.empty(); }
  Error last_error;

 private:
  template <class... Parts>
  void add(fmt::format_string<Parts...> form, Parts&&... parts) {
    lines_.push_back(fmt::format(form, std::forward<Parts>(parts)...));
  }
  std::vector<std::string> lines_;
};

class FetchesTest : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;
  static constexpr int64_t kSecond = 1'000'000;

  FetchesTest() {
    Fetches::Options options;
    options.capacity = 10'000;
    options.chunk_bytes = 100;
    options.chunks_in_flight = 2;
    options.no_progress_us = kSecond;
    options.patience_us = 10 * kSecond;
    options.max_bytes = 1000;
    fetches.emplace(options, sink);
  }
  ~FetchesTest() override {
    fetches->check_invariants();
    for (const std::string& line : sink.take()) ADD_FAILURE() << "not expected: " << line;
  }

  // Sources are named by the last part of their addresses.
  static FetchOrder order(uint32_t n, const std::vector<int>& sources, int64_t size = 0,
                          bool first = false) {
    FetchOrder order{object(n), {}, first};
    for (int source : sources)
      order.sources.push_back(
          {node(static_cast<uint64_t>(source)), fmt::format("10.0.0.{}", source), 7, size});
    return order;
  }
  void start(std::vector<FetchOrder> orders) {
    fetches->start(std::move(orders), now);
    fetches->check_invariants();
  }
  void connected(FetchId fetch) {
    fetches->connected(fetch);
    fetches->check_invariants();
  }
  void connect_failed(FetchId fetch, Code code) {
    fetches->connect_failed(fetch, make_error(code, "no way"), now);
    fetches->check_invariants();
  }
  void described(FetchId fetch, Result<int64_t> size) {
    Result<Fetches::Description> answer = Fetches::Description{};
    if (size) {
      answer->size = *size;
    } else {
      answer = size.error();
    }
    fetches->described(fetch, answer, now);
    fetches->check_invariants();
  }
  void created(FetchId fetch, int64_t offset) {
    fetches->created(fetch, offset, now);
    fetches->check_invariants();
  }
  void pulled(FetchId fetch, size_t chunk, Result<int64_t> total_size) {
    fetches->pulled(fetch, chunk, total_size, now);
    fetches->check_invariants();
  }
  void piece_sent(FetchId fetch) {
    fetches->piece_sent(fetch, now);
    fetches->check_invariants();
  }
  void pass(int64_t us) {
    now.steady_us += us;
    fetches->tick(now);
    fetches->check_invariants();
  }
  // Brings a fetch of one object to where its chunks are requested into the arena at 4096.
  void receive(FetchId fetch, int64_t size, const std::vector<int>& sources) {
    start({order(static_cast<uint32_t>(fetch), sources)});
    connected(fetch);
    described(fetch, size);
    created(fetch, 4096);
    sink.take();
  }
  static Error broken() { return make_error(Code::kUnavailable, "it broke"); }
  static Error missing() { return make_error(Code::kNotFound, "it has none"); }

  FetchRecorder sink;
  Now now{kSecond, 0};
  std::optional<Fetches> fetches;
};

}  // namespace rt::store
