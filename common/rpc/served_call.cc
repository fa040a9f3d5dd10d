#include "common/rpc/served_call.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace rt::rpc {

void ServedCall::serve(google::protobuf::Service& service,
                       const google::protobuf::MethodDescriptor& method, Bytes message) {
  request_.reset(service.GetRequestPrototype(&method).New());
  response_.reset(service.GetResponsePrototype(&method).New());
  if (!request_->ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    fail(make_error(Code::kProtocol,
                    fmt::format("the request of {} cannot be parsed", method.full_name())));
    Run();
    return;
  }
  service.CallMethod(&method, this, request_.get(), response_.get(), this);
}

// The service runs it exactly once, to answer the call, which deletes it.
void ServedCall::Run() {
  std::unique_ptr<ServedCall> self(this);
  sink_.on_call_finished();
  if (one_way_ || !connection_->is_open()) return;
  if (failed_) {
    sink_.answer_error(call_, error_);
  } else {
    sink_.answer(call_, *response_, reply_attachment_);
  }
}

}  // namespace rt::rpc
