// Private to common/rpc: a ServedCall is one request of the peer, from its arrival to done->Run(),
// which answers and deletes it.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/connection.h"

namespace rt::rpc {

// Takes the answers. Implemented by the connection's Impl, which lives as long as its Connection.
class AnswerSink {
 public:
  virtual void answer(uint32_t call, const google::protobuf::Message& response,
                      const OwnedBytes& attachment) = 0;
  virtual void answer_error(uint32_t call, const Error& error) = 0;
  // Called once per request, answered or not: it no longer counts as unanswered.
  virtual void on_call_finished() = 0;

 protected:
  ~AnswerSink() = default;
};

class ServedCall final : public ServerCall, public google::protobuf::Closure {
 public:
  // Answers when the method is done, unless the request is one-way or the connection has closed.
  // `sink` lives as long as `connection`.
  ServedCall(std::shared_ptr<Connection> connection, AnswerSink& sink, uint32_t call, bool one_way,
             Bytes attachment)
      : connection_(std::move(connection)),
        sink_(sink),
        call_(call),
        one_way_(one_way),
        attachment_(attachment) {}
  // Parses `message` and calls the method. Run() may be called before this returns, or later.
  void serve(google::protobuf::Service& service, const google::protobuf::MethodDescriptor& method,
             Bytes message);

  // ServerCall
  const std::shared_ptr<Connection>& connection() override { return connection_; }
  Bytes attachment() override { return attachment_; }
  void set_reply_attachment(OwnedBytes bytes) override { reply_attachment_ = std::move(bytes); }
  void fail(Error error) override {
    failed_ = true;
    error_ = std::move(error);
  }

  // google::protobuf::Closure
  void Run() override;

  // google::protobuf::RpcController
  void Reset() override {}
  bool Failed() const override { return failed_; }
  std::string ErrorText() const override { return error_.message; }
  void StartCancel() override {}
  void SetFailed(const std::string& reason) override { fail(make_error(Code::kInternal, reason)); }
  bool IsCanceled() const override { return !connection_->is_open(); }
  void NotifyOnCancel(google::protobuf::Closure*) override {}

 private:
  // Shared, so that `sink_` stays valid when the connection breaks before the answer.
  const std::shared_ptr<Connection> connection_;
  AnswerSink& sink_;
  const uint32_t call_;
  const bool one_way_;
  Bytes attachment_;
  std::unique_ptr<google::protobuf::Message> request_, response_;
  OwnedBytes reply_attachment_;
  bool failed_ = false;
  Error error_;
};

}  // namespace rt::rpc
