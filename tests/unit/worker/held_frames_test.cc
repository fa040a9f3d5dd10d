// The order in which an executing worker sends replies and returns borrows, seen by an owner that
// has two connections to it, as two processes have that connected to each other at the same time.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "common/base/rng.h"
#include "common/net/poll_loop.h"
#include "common/rpc/client.h"
#include "tests/support/fake_node_manager.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/worker.h"

namespace rt::test {
namespace {

using Controller = google::protobuf::RpcController;
using Closure = google::protobuf::Closure;

// Returns the references in its argument.
class ReturnsWhatItGot final : public worker::Executor {
 public:
  void execute(std::unique_ptr<worker::ExecutingTask> task) override {
    task->started();
    const std::vector<worker::Ref> got = task->args().at(0).contained;
    worker::ValueParts parts;
    parts.kind = worker::ValueKind::kRaw;
    parts.contained = got;
    task->finish({&parts, 1});
  }
  void cancel(const TaskId&) override {}
};

// The end of one connection at the owner. Borrows are not confirmed before confirm().
class Line final : public proto::WorkerService {
 public:
  void AddBorrower(Controller*, const proto::BorrowRequest* request, proto::BorrowReply*,
                   Closure* done) override {
    asked.push_back(*request);
    waiting_.push_back(done);
  }
  void RemoveBorrower(Controller*, const proto::ReturnBorrow* note, proto::Empty*,
                      Closure* done) override {
    returned.push_back(*note);
    done->Run();
  }
  void confirm() {
    for (Closure* done : std::exchange(waiting_, {})) done->Run();
  }

  std::shared_ptr<rpc::Connection> connection;
  std::vector<proto::BorrowRequest> asked;
  std::vector<proto::ReturnBorrow> returned;
  int replies = 0;

 private:
  std::vector<Closure*> waiting_;
};

class HeldFramesTest : public ::testing::Test {
 protected:
  HeldFramesTest() {
    char name[] = "/tmp/held_frames_XXXXXX";
    directory_ = mkdtemp(name);
    node_ = std::make_unique<FakeNodeManager>(directory_);
    Rng rng(11);
    worker::Options options;
    options.is_driver = false;
    options.worker_id = WorkerId::random(rng);
    options.node_manager_socket = node_->socket();
    worker_ = worker::Worker::start(options).value();
    thread_ = std::thread([this] { worker_->run(executor_); });
    me_.role = "worker";
    me_.id = WorkerId::random(rng).binary();
    object_ = make_object_id(make_task_id(1, job_id_from_int(1)), 1);
    const worker::Ref own = worker_->put({}).value();
    socket_ = worker_->owner_of(own).socket_path();
    for (Line* line : {&first_, &second_}) connect(*line);
  }
  ~HeldFramesTest() override {
    for (Line* line : {&first_, &second_})
      line->connection->close(make_error(Code::kUnavailable, "the test is over"));
    node_.reset();
    thread_.join();
    worker_.reset();
    std::filesystem::remove_all(directory_);
  }

  void until(const std::function<bool()>& done) {
    const int64_t deadline_us = loop_.now_us() + 70'000'000;
    for (net::PollLoop::Ready ready; !done(); loop_.dispatch(ready)) {
      ASSERT_LT(loop_.now_us(), deadline_us);
      loop_.flush_all();
      loop_.wait(ready = {}, 100'000);
    }
  }
  void connect(Line& line) {
    rpc::connect(loop_, {net::Address::unix_socket(socket_), "self", ""}, me_, 60'000'000,
                 [&](auto result) { line.connection = result.value(); });
    until([&] { return line.connection != nullptr; });
    line.connection->add_service(&line);
    line.connection->set_flat_handler([&line](uint32_t type, Bytes) {
      if (type == worker::wire::kReplies) ++line.replies;
    });
    round_trip(line);  // The worker has taken it before there is another one.
  }
  // The worker has read what was sent, and this process what the worker had sent by then.
  void round_trip(Line& line) {
    bool answered = false;
    proto::ObjectStatusRequest request;
    request.set_object_id(object_.binary());
    rpc::call(*line.connection, &proto::WorkerService::Stub::GetObject, request, -1,
              [&](Result<proto::ObjectStatus>) { answered = true; });
    until([&] { return answered; });
  }
  // A task with a value that has a reference to this process's object inside.
  void push_task(Line& line) {
    proto::WorkerAddress address;
    address.set_worker_id(me_.id);
    const std::string owner = address.SerializeAsString();
    std::string packed;
    worker::wire::Writer refs(packed);
    refs.fields(uint16_t{1}, static_cast<uint32_t>(owner.size()));
    refs.bytes(owner);
    refs.fields(uint32_t{1}, object_, uint16_t{0});
    ASSERT_TRUE(worker::unpack_refs(as_bytes(packed)));
    worker::ValueParts parts;
    parts.kind = worker::ValueKind::kRaw;
    std::string value(worker::encoded_size(parts, packed.size()), '\0');
    worker::encode_value(parts, packed, reinterpret_cast<uint8_t*>(value.data()),
                         worker::plain_copy);
    proto::TaskTemplate spec;
    spec.set_name("f");
    spec.set_num_returns(1);
    const std::string function = spec.SerializeAsString();
    worker::wire::Writer writer(line.connection->begin_flat(worker::wire::kTasks));
    const uint32_t function_number = 0, sequence_number = 1, arguments = 1;
    const uint8_t attempt = 0;
    const int64_t submitted_us = 0;
    writer.fields(worker::wire::kTemplateRecord, function_number,
                  static_cast<uint32_t>(function.size()));
    writer.bytes(function);
    writer.fields(worker::wire::kTaskRecord, sequence_number, function_number,
                  make_task_id(2, job_id_from_int(1)), attempt, submitted_us, arguments);
    writer.inline_value(value);
    line.connection->end_flat();
    line.connection->flush();
  }

  std::string directory_, socket_;
  net::PollLoop loop_;
  rpc::Identity me_;
  ObjectId object_;
  std::unique_ptr<FakeNodeManager> node_;
  ReturnsWhatItGot executor_;
  std::unique_ptr<worker::Worker> worker_;
  std::thread thread_;
  // The worker registers and returns borrows over the first one.
  Line first_, second_;
};

TEST_F(HeldFramesTest, ABorrowThatAReplyLendsIsReturnedWhenItsReceiverHasTheReply) {
  push_task(second_);
  until([&] { return !first_.asked.empty(); });
  ASSERT_FALSE(first_.asked.empty());
  EXPECT_EQ(first_.asked.front().object_ids_size(), 1);
  round_trip(second_);
  EXPECT_EQ(second_.replies, 0) << "the reply ends the hold on the argument: it waits";
  first_.confirm();
  until([&] { return !second_.asked.empty(); });
  ASSERT_FALSE(second_.asked.empty());
  // The question behind the reply, which names no object.
  EXPECT_EQ(second_.replies, 1);
  EXPECT_EQ(second_.asked.front().object_ids_size(), 0);
  round_trip(first_);
  round_trip(second_);
  EXPECT_TRUE(first_.returned.empty()) << "it could overtake the reply on the other connection";
  second_.confirm();
  until([&] { return !first_.returned.empty(); });
  ASSERT_FALSE(first_.returned.empty());
  EXPECT_EQ(first_.returned.front().object_ids(0), object_.view());
  EXPECT_EQ(first_.returned.front().counts(0), 1u);
}

TEST_F(HeldFramesTest, OnOneConnectionTheOrderIsEnough) {
  push_task(first_);
  until([&] { return !first_.asked.empty(); });
  first_.confirm();
  until([&] { return first_.replies > 0 && !first_.returned.empty(); });
  EXPECT_EQ(first_.asked.size(), 1u);
  EXPECT_EQ(second_.replies, 0);
}

}  // namespace
}  // namespace rt::test
