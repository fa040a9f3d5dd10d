// connect(): the client's half of the greeting, with preamble and hello.
#include <fmt/format.h>

#include "common/proto/rpc.pb.h"
#include "common/rpc/connection_impl.h"
#include "common/rpc/hello.h"
#include "common/rpc/preamble.h"
#include "common/tls/stream.h"

namespace rt::rpc {

// One attempt to connect. The callbacks that the loop holds for it keep it alive until finish():
// first that of the socket, then that of the timer. It owns the connection, which refers back to it
// only weakly: a loop that is destroyed in the middle thereby releases both, and the socket.
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  using Done = std::function<void(Result<std::shared_ptr<Connection>>)>;

  Connector(net::Loop& loop, const Target& target, const Identity& me, int64_t timeout_us,
            Done done)
      : loop_(loop), target_(target), me_(me), timeout_us_(timeout_us), done_(std::move(done)) {}

  void start() {
    int64_t started_us = loop_.now_us();
    loop_.connect(
        target_.address, timeout_us_,
        [self = shared_from_this(), started_us](Result<std::unique_ptr<net::Stream>> stream) {
          if (!stream) return self->finish(std::move(stream).error());
          self->greet(std::move(*stream), started_us);
        });
  }

 private:
  void greet(std::unique_ptr<net::Stream> stream, int64_t started_us) {
    auto self = shared_from_this();
    stream->write(as_bytes(encode_preamble({target_.name, target_.id})));
    if (!stream->is_unix()) {
      const auto& tls = tls::Tls::of_process();
      if (!tls) return finish(tls.error());
      if (*tls)
        stream = tls::make_stream(loop_, std::move(stream), (*tls)->begin(RAY_TLS_CLIENT),
                                  {.answered = peer_spoke_plain_});
    }
    connection_ = Connection::Impl::make(loop_, std::move(stream));
    Connection::Impl& impl = *connection_->impl_;
    if (!impl.peer.is_unix) impl.peer.name = target_.address.to_string();
    impl.caller_reports = true;
    impl.on_greeting = [weak = weak_from_this()](const FrameHeader& header, Bytes message) {
      if (auto self = weak.lock()) self->on_answer(header, message);
    };
    impl.on_gone = [weak = weak_from_this()](const Error& why) {
      if (auto self = weak.lock()) self->on_lost(why);
    };
    constexpr int64_t kForeverUs = int64_t{1} << 60;
    int64_t left_us = timeout_us_ < 0
                          ? kForeverUs
                          : std::max<int64_t>(0, started_us + timeout_us_ - loop_.now_us());
    timer_ = loop_.run_after(left_us, [self] {
      self->timer_ = 0;
      self->fail(Code::kTimeout, fmt::format("no answer to the hello within {} ms: the process is "
                                             "stuck, or something else listens there",
                                             self->timeout_us_ / 1000));
    });
    proto::Hello hello = make_hello(me_);
    if (hello.ByteSizeLong() > kMaxHelloBytes) {
      return fail(Code::kInvalid,
                  fmt::format("the hello has {} bytes, {} are allowed: the job's configuration "
                              "(environment variables, paths) is too large",
                              hello.ByteSizeLong(), kMaxHelloBytes));
    }
    (void)impl.write_frame({.kind = FrameKind::kHello}, hello, {});
    impl.stream->flush();
  }

  void on_answer(const FrameHeader& header, Bytes message) {
    if (header.kind == FrameKind::kError) {
      proto::RpcError error;
      if (!error.ParseFromArray(message.data(), static_cast<int>(message.size())))
        return fail(Code::kProtocol, "it answered with an error that cannot be parsed");
      // An acceptor may refuse a connection in plain text before TLS begins. One without TLS calls
      // our TLS records malformed (kProtocol).
      if (*peer_spoke_plain_ && static_cast<Code>(error.code()) == Code::kProtocol)
        return fail(Code::kUnauthenticated, kNoTlsThere);
      return fail(static_cast<Code>(error.code()), error.message());
    }
    if (*peer_spoke_plain_) return fail(Code::kUnauthenticated, kNoTlsThere);
    proto::HelloReply reply;
    if (header.kind != FrameKind::kHelloReply ||
        !reply.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      return fail(Code::kProtocol,
                  "it answered with something other than a hello: is that the right port?");
    }
    Status status = check_hello_reply(me_, reply);
    if (!status) return fail(status.error().code, status.error().message);
    Connection::Impl& impl = *connection_->impl_;
    impl.peer.role = reply.role();
    impl.peer.id = reply.peer_id();
    impl.peer.cluster_id = reply.cluster_id();
    impl.peer.build = reply.build();
    impl.on_gone = nullptr;
    impl.caller_reports = false;
    // become_open() destroys the callback in which this code runs.
    auto self = shared_from_this();
    impl.become_open();
    finish(std::exchange(connection_, nullptr));
  }

  void on_lost(const Error& why) {
    if (why.code == Code::kUnauthenticated) return fail(why.code, why.message);
    if (why.code == Code::kProtocol)
      return fail(Code::kProtocol,
                  "it does not speak this protocol: is that the right port? (" + why.message + ")");
    fail(Code::kUnavailable, why.message + " during the hello: is that the right port?");
  }

  void fail(Code code, const std::string& what) {
    finish(make_error(code, target_.address.to_string() + ": " + what));
  }

  void finish(Result<std::shared_ptr<Connection>> result) {
    auto self = shared_from_this();
    if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
    if (auto connection = std::exchange(connection_, nullptr)) {
      connection->impl_->on_gone = nullptr;
      connection->close(make_error(Code::kUnavailable, "the hello failed"));
    }
    if (auto done = std::exchange(done_, nullptr)) done(std::move(result));
  }

  static constexpr const char* kNoTlsThere =
      "it does not speak TLS, and this process does (RAY_USE_TLS is set here): give both the same "
      "RAY_TLS_... variables";

  net::Loop& loop_;
  const Target target_;
  const Identity me_;
  const int64_t timeout_us_;
  Done done_;                               // Null after finish().
  std::shared_ptr<Connection> connection_;  // Null once it was handed out.
  net::Loop::TimerId timer_ = 0;
  // Set by the TLS stream, which shares it, when the peer answers in plain text.
  const std::shared_ptr<bool> peer_spoke_plain_ = std::make_shared<bool>(false);
};

void connect(net::Loop& loop, const Target& target, const Identity& me, int64_t timeout_us,
             std::function<void(Result<std::shared_ptr<Connection>>)> done) {
  std::make_shared<Connector>(loop, target, me, timeout_us, std::move(done))->start();
}

}  // namespace rt::rpc
