#include "common/rpc/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include "common/base/log.h"
#include "common/proto/rpc.pb.h"
#include "common/rpc/client.h"
#include "common/rpc/connection_impl.h"

namespace rt::rpc {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

namespace {

// Attachments of at least this size are sent from where they are instead of being copied.
constexpr size_t kReferenceBytes = 16 << 10;
constexpr int64_t kLingerUs = 1'000'000;

void append_header(std::string& out, const FrameHeader& header) {
  uint8_t bytes[kHeaderBytes];
  encode_header(header, bytes);
  out.append(reinterpret_cast<const char*>(bytes), kHeaderBytes);
}

}  // namespace

Connection::Impl::Impl(net::Loop& l, std::unique_ptr<net::Stream> s)
    : loop(l), stream(std::move(s)), reader(*this, kMaxHelloBytes) {
  peer.is_unix = stream->is_unix();
  peer.name = stream->peer_name();
}

Connection::Impl::~Impl() {
  for (const PendingCall& call : calls.take_all()) {
    if (call.timer != 0) loop.cancel(call.timer);
  }
}

std::shared_ptr<Connection> Connection::Impl::make(net::Loop& loop,
                                                   std::unique_ptr<net::Stream> stream) {
  auto impl = std::make_unique<Impl>(loop, std::move(stream));
  Impl* raw = impl.get();
  std::shared_ptr<Connection> connection(new Connection(std::move(impl)));
  raw->self = connection.get();
  raw->stream->start(connection.get());
  return connection;
}

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// Destruction drops pending calls without calling back: users that wait for answers call close()
// first.
Connection::~Connection() = default;

void Connection::Impl::become_open() {
  state = State::kOpen;
  on_greeting = nullptr;
  reader.set_max_body(kMaxFrameBytes);
}

void Connection::Impl::finish(const Error& why, bool linger) {
  if (state == State::kClosed) return;
  auto alive = self->shared_from_this();
  state = State::kClosed;
  reader.abandon_direct();
  stream->flush();
  if (linger && stream->native_handle() >= 0) {
    // Closing a socket with unread input makes the kernel reset the connection, which would lose
    // what the peer has not read yet.
    ::shutdown(stream->native_handle(), SHUT_WR);
    linger_timer = loop.run_after(kLingerUs, [alive] { alive->impl_->end_linger(); });
  } else {
    stream->close();
  }
  for (PendingCall& call : calls.take_all()) {
    if (call.timer != 0) loop.cancel(call.timer);
    call.done(make_error(Code::kUnavailable,
                         fmt::format("{} to {}: {}", call.method->name(), peer.name, why.message)),
              {});
  }
  on_greeting = nullptr;
  if (auto gone = std::exchange(on_gone, nullptr)) gone(why);
  if (auto closed = std::exchange(closed_handler, nullptr)) closed(why);
}

void Connection::Impl::end_linger() {
  if (linger_timer != 0) loop.cancel(std::exchange(linger_timer, 0));
  stream->close();
  if (auto lingered = std::exchange(on_lingered, nullptr)) lingered();
}

void Connection::Impl::refuse(const Error& why) {
  if (state == State::kClosed) return;
  write_error(0, why);
  finish(why, true);
}

const Peer& Connection::peer() const { return impl_->peer; }
bool Connection::is_open() const { return impl_->state == Impl::State::kOpen; }

void Connection::add_service(google::protobuf::Service* service) {
  const MethodTable& table = MethodTable::of(service->GetDescriptor());
  for (const auto& other : impl_->services) RT_CHECK(!table.collides_with(*other.table));
  impl_->services.push_back({service, &table});
}

void Connection::set_flat_handler(FlatHandler handler) { impl_->flat_handler = std::move(handler); }
void Connection::set_closed_handler(std::function<void(const Error&)> handler) {
  impl_->closed_handler = std::move(handler);
}
void Connection::close(const Error& why) { impl_->finish(why, false); }

MutableBytes Connection::read_buffer() { return impl_->reader.buffer(); }

void Connection::on_read(size_t n) {
  auto alive = shared_from_this();
  Status status = impl_->reader.commit(n);
  if (status && impl_->reader.kept_bytes() > kMaxKeptBytes) {
    status = make_error(
        Code::kResourceExhausted,
        fmt::format(
            "the peer sends requests but does not read the answers: {} bytes are queued for it",
            queued_bytes()));
  }
  if (status) {
    // If a handler pumped the loop and the queue drained meanwhile, on_drained() could not resume.
    if (impl_->reader.kept_bytes() > 0 && !impl_->withholds_frames())
      impl_->loop.post([alive] { alive->impl_->resume(); });
    return;
  }
  impl_->fail_reading(status.error());
}

void Connection::Impl::resume() {
  if (reader.busy() || withholds_frames() || state != State::kOpen) return;
  Status status = reader.resume();
  if (!status) fail_reading(status.error());
}

void Connection::Impl::fail_reading(const Error& why) {
  if (!caller_reports)
    RT_WARN("closing the connection with {} {}: {}",
            peer.role.empty() ? "an unknown peer" : peer.role, peer.name, why.message);
  refuse(why);
}

void Connection::on_closed(const Error& why) {
  auto alive = shared_from_this();
  if (impl_->state == Impl::State::kClosed) {
    impl_->end_linger();
  } else {
    impl_->finish(why, false);
  }
}

void Connection::on_drained() {
  auto alive = shared_from_this();
  impl_->resume();
}

Status Connection::Impl::write_frame(FrameHeader header,
                                     const google::protobuf::MessageLite& message,
                                     const OwnedBytes& attachment) {
  size_t message_bytes = message.ByteSizeLong();
  size_t body_bytes = message_bytes + attachment.bytes.size();
  if (body_bytes > kMaxFrameBytes) {
    return make_error(Code::kInvalid,
                      fmt::format("a message of {} bytes exceeds the limit of {}: split it, or "
                                  "store large data as an object",
                                  body_bytes, kMaxFrameBytes));
  }
  if (stream->queued_bytes() > kMaxQueuedBytes) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("{} bytes are queued already: the other side does not read",
                                  stream->queued_bytes()));
  }
  header.body_bytes = static_cast<uint32_t>(body_bytes);
  header.message_bytes = static_cast<uint32_t>(message_bytes);
  std::string& out = stream->out();
  append_header(out, header);
  message.AppendPartialToString(&out);
  if (attachment.keepalive && attachment.bytes.size() >= kReferenceBytes) {
    stream->write_ref(attachment.bytes, attachment.keepalive);
  } else {
    out.append(as_view(attachment.bytes));
  }
  return {};
}

void Connection::Impl::write_error(uint32_t call, const Error& error) {
  proto::RpcError message;
  message.set_code(static_cast<int>(error.code));
  message.set_message(error.message);
  (void)write_frame({.call = call, .kind = FrameKind::kError}, message, {});
}

void Connection::Impl::answer(uint32_t call, const Message& response,
                              const OwnedBytes& attachment) {
  Status written = write_frame({.call = call, .kind = FrameKind::kResponse}, response, attachment);
  if (!written) answer_error(call, written.error());
}

void Connection::Impl::answer_error(uint32_t call, const Error& error) {
  if (stream->queued_bytes() > kMaxQueuedBytes)
    return finish(make_error(Code::kResourceExhausted, "the other side does not read its answers"),
                  false);
  write_error(call, error);
}

std::string& Connection::begin_flat(uint32_t type) {
  std::string& out = is_open() ? impl_->stream->out() : impl_->discarded;
  impl_->flat_start = out.size();
  append_header(out, {.method = type, .kind = FrameKind::kFlat});
  return out;
}

void Connection::end_flat() {
  if (!is_open()) {
    impl_->discarded.clear();
    return;
  }
  std::string& out = impl_->stream->out();
  auto body = static_cast<uint32_t>(out.size() - impl_->flat_start - kHeaderBytes);
  RT_CHECK(out.size() - impl_->flat_start - kHeaderBytes <= kMaxFrameBytes);
  // Fills in body_bytes and message_bytes, the first two fields.
  std::memcpy(out.data() + impl_->flat_start, &body, sizeof(body));
  std::memcpy(out.data() + impl_->flat_start + 4, &body, sizeof(body));
}

void Connection::flush() { impl_->stream->flush(); }
size_t Connection::queued_bytes() const { return impl_->stream->queued_bytes(); }

void Connection::CallMethod(const MethodDescriptor* method,
                            google::protobuf::RpcController* controller, const Message* request,
                            Message*, google::protobuf::Closure*) {
  auto* call = static_cast<ClientCall*>(controller);
  if (call == nullptr) {
    CallOptions options;
    options.one_way = true;
    call_raw(method, *request, nullptr, std::move(options), nullptr);
  } else {
    call_raw(method, *request, call->response_prototype, std::move(call->options),
             std::move(call->done));
  }
}

void Connection::call_raw(const MethodDescriptor* method, const Message& request,
                          const Message* response_prototype, CallOptions options, RawDone done) {
  Impl& impl = *impl_;
  FrameHeader header{.method = method_hash(method->full_name()),
                     .kind = options.one_way ? FrameKind::kOneWay : FrameKind::kRequest};
  Error failure;
  if (!is_open()) {
    failure = make_error(Code::kUnavailable, fmt::format("{} to {}: the connection is closed",
                                                         method->name(), impl.peer.name));
  } else {
    if (!options.one_way)
      header.call =
          impl.calls.add({std::move(done), response_prototype, method, options.response_target});
    Status written = impl.write_frame(header, request, options.attachment);
    if (written) {
      if (options.one_way || options.timeout_us < 0) return;
      impl.calls.find(header.call)->timer = impl.loop.run_after(
          options.timeout_us,
          [&impl, id = header.call, limit = options.timeout_us] { impl.time_out(id, limit); });
      return;
    }
    failure = written.error();
    if (!options.one_way) done = std::move(impl.calls.take(header.call)->done);
  }
  if (options.one_way) {
    if (is_open()) RT_WARN("{} to {} is lost: {}", method->name(), impl.peer.name, failure.message);
    return;
  }
  impl.loop.post([done = std::move(done), failure] { done(failure, {}); });
}

void Connection::Impl::end_call(uint32_t id, Result<std::unique_ptr<Message>> result,
                                Bytes attachment) {
  const std::optional<PendingCall> call = calls.take(id);
  if (!call) return;  // The call has timed out.
  if (call->timer != 0) loop.cancel(call->timer);
  call->done(std::move(result), attachment);
}

void Connection::Impl::time_out(uint32_t id, int64_t timeout_us) {
  auto alive = self->shared_from_this();
  PendingCall* call = calls.find(id);
  if (!call) return;
  call->timer = 0;
  // The caller may release the memory for the attachment once the call has ended.
  if (calls.is_direct(id)) {
    reader.abandon_direct();
    (void)calls.end_direct();
  }
  end_call(
      id,
      make_error(Code::kTimeout, fmt::format("{} to {}: no answer within {} ms",
                                             call->method->name(), peer.name, timeout_us / 1000)),
      {});
}

FrameReader::Route Connection::Impl::route(const FrameHeader& header) {
  if (header.kind != FrameKind::kResponse || state != State::kOpen)
    return FrameReader::Route::kWhole;
  const PendingCall* call = calls.find(header.call);
  if (!call) return FrameReader::Route::kSkip;  // The call has timed out.
  bool direct = !call->target.empty() && header.body_bytes > header.message_bytes;
  return direct ? FrameReader::Route::kDirect : FrameReader::Route::kWhole;
}

void Connection::Impl::on_frame(const FrameHeader& header, Bytes message, Bytes attachment) {
  if (state == State::kGreeting) {
    if (on_greeting) on_greeting(header, message);
    return;
  }
  switch (header.kind) {
    case FrameKind::kFlat:
      if (flat_handler) return flat_handler(header.method, message.empty() ? attachment : message);
      return refuse(make_error(Code::kProtocol, "flat frames are not expected here"));
    case FrameKind::kRequest:
    case FrameKind::kOneWay: return on_request(header, message, attachment);
    case FrameKind::kResponse: return on_response(header, message, attachment);
    case FrameKind::kError: return on_error(header, message);
    case FrameKind::kHello:
    case FrameKind::kHelloReply:
      RT_WARN("closing the connection with {} {}: the peer sent a second hello", peer.role,
              peer.name);
      return refuse(make_error(Code::kProtocol, "the peer sent a second hello"));
  }
}

void Connection::Impl::on_request(const FrameHeader& header, Bytes message, Bytes attachment) {
  bool one_way = header.kind == FrameKind::kOneWay;
  for (const Service& service : services) {
    const MethodDescriptor* method = service.table->find(header.method);
    if (method == nullptr) continue;
    if (served_calls >= kMaxServedCalls) {
      if (!one_way)
        answer_error(header.call,
                     make_error(Code::kResourceExhausted,
                                fmt::format("{} calls of this connection wait for answers already",
                                            served_calls)));
      return;
    }
    ++served_calls;
    // The call deletes itself in Run().
    auto* call = new ServedCall(self->shared_from_this(), *this, header.call, one_way, attachment);
    call->serve(*service.service, *method, message);
    return;
  }
  if (!one_way)
    answer_error(
        header.call,
        make_error(Code::kUnsupported, fmt::format("this process does not serve method {:08x}: is "
                                                   "it the right process, and of the same release?",
                                                   header.method)));
}

namespace {

Result<std::unique_ptr<Message>> parse_response(const Message* prototype,
                                                const MethodDescriptor* method, Bytes bytes) {
  std::unique_ptr<Message> message(prototype->New());
  if (message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return make_error(Code::kProtocol,
                    fmt::format("the answer to {} cannot be parsed", method->full_name()));
}

Error wrong_size(const MethodDescriptor* method, size_t expected, size_t got) {
  return make_error(Code::kProtocol,
                    fmt::format("the answer to {} brings {} bytes where {} are expected",
                                method->full_name(), got, expected));
}

}  // namespace

void Connection::Impl::on_response(const FrameHeader& header, Bytes message, Bytes attachment) {
  const PendingCall* call = calls.find(header.call);
  if (!call) return;
  if (!call->target.empty())
    return end_call(header.call, wrong_size(call->method, call->target.size(), attachment.size()),
                    {});
  end_call(header.call, parse_response(call->prototype, call->method, message), attachment);
}

void Connection::Impl::on_error(const FrameHeader& header, Bytes message) {
  proto::RpcError parsed;
  if (!parsed.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return refuse(make_error(Code::kProtocol, "an error frame that cannot be parsed"));
  auto code = static_cast<Code>(parsed.code());
  Error error = make_error(code == Code::kOk ? Code::kInternal : code, parsed.message());
  if (header.call != 0) {
    const PendingCall* call = calls.find(header.call);
    if (call && error.code == Code::kUnsupported)
      error.message = fmt::format("{}: {}", call->method->full_name(), error.message);
    return end_call(header.call, std::move(error), {});
  }
  finish(
      make_error(error.code, fmt::format("{} ended the connection: {}", peer.name, error.message)),
      false);
}

MutableBytes Connection::Impl::on_direct_begin(const FrameHeader& header, Bytes message) {
  const PendingCall* call = calls.find(header.call);
  if (!call) return {};
  size_t size = header.body_bytes - header.message_bytes;
  if (call->target.size() != size) {
    end_call(header.call, wrong_size(call->method, call->target.size(), size), {});
    return {};
  }
  auto parsed = parse_response(call->prototype, call->method, message);
  if (!parsed) {
    end_call(header.call, std::move(parsed).error(), {});
    return {};
  }
  calls.begin_direct(header.call, std::move(*parsed));
  return call->target;
}

void Connection::Impl::on_direct_end(const FrameHeader&) {
  auto [id, message] = calls.end_direct();
  if (const PendingCall* call = calls.find(id)) end_call(id, std::move(message), call->target);
}

}  // namespace rt::rpc
