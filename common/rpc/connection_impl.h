// Private to common/rpc: the state of a Connection, which connection.cc shares with the connector
// and the server.
#pragma once

#include <string>
#include <vector>

#include "common/rpc/connection.h"
#include "common/rpc/frame_reader.h"
#include "common/rpc/method_table.h"
#include "common/rpc/pending_calls.h"
#include "common/rpc/served_call.h"

namespace rt::rpc {

// Once more than this is queued for a peer that does not read, nothing more can be queued
// (kResourceExhausted).
inline constexpr size_t kMaxQueuedBytes = size_t{1} << 30;
// Backpressure for callers. While more than kMaxUnreadBytes are queued for its peer, an accepted
// connection keeps the peer's frames without handling them. The peer may send kMaxKeptBytes
// meanwhile, which has room for the largest frame; beyond that the connection is closed. Only the
// accepting side waits: the side that connected goes on reading, so the two never wait for each
// other. Connections with a flat handler are exempt, since workers send many flat frames in both
// directions at once, without calls that could be counted.
inline constexpr size_t kMaxUnreadBytes = size_t{32} << 20;
inline constexpr size_t kMaxKeptBytes = kMaxFrameBytes + (size_t{64} << 20);
// Unanswered requests of one peer; further ones are refused with kResourceExhausted.
inline constexpr size_t kMaxServedCalls = 100'000;

struct Connection::Impl final : FrameReader::Sink, AnswerSink {
  enum class State {
    kGreeting,  // Hellos are exchanged: on_greeting gets the first frame.
    kOpen,
    // Closed for its users. The socket may linger for a moment so that the peer can read why.
    kClosed,
  };
  struct Service {
    google::protobuf::Service* service;
    const MethodTable* table;
  };

  Impl(net::Loop& loop, std::unique_ptr<net::Stream> stream);
  ~Impl() override;
  // Starts reading; the first frame goes to `on_greeting`.
  static std::shared_ptr<Connection> make(net::Loop& loop, std::unique_ptr<net::Stream> stream);

  // Queues a frame. kInvalid when the frame is too large, kResourceExhausted when the queue is.
  Status write_frame(FrameHeader header, const google::protobuf::MessageLite& message,
                     const OwnedBytes& attachment);
  void write_error(uint32_t call, const Error& error);
  void become_open();
  // Closes for the users: ends the pending calls, then calls on_gone and the closed handler. With
  // `linger` the socket stays open for a moment, so that the peer can read what was written last.
  void finish(const Error& why, bool linger);
  void refuse(const Error& why);  // Tells the peer why, then calls finish().
  void end_linger();

  void end_call(uint32_t id, Result<std::unique_ptr<google::protobuf::Message>> result,
                Bytes attachment);
  void time_out(uint32_t id, int64_t timeout_us);
  void on_response(const FrameHeader& header, Bytes message, Bytes attachment);
  void on_error(const FrameHeader& header, Bytes message);
  void on_request(const FrameHeader& header, Bytes message, Bytes attachment);

  // AnswerSink
  void answer(uint32_t call, const google::protobuf::Message& response,
              const OwnedBytes& attachment) override;
  void answer_error(uint32_t call, const Error& error) override;
  void on_call_finished() override { --served_calls; }

  // FrameReader::Sink
  FrameReader::Route route(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, Bytes message, Bytes attachment) override;
  MutableBytes on_direct_begin(const FrameHeader& header, Bytes message) override;
  void on_direct_end(const FrameHeader& header) override;
  bool wants_more() const override { return state != State::kClosed; }
  bool withholds_frames() const override {
    return accepted && state == State::kOpen && !flat_handler &&
           stream->queued_bytes() > kMaxUnreadBytes;
  }
  void resume();  // Handles the frames that were kept.
  void fail_reading(const Error& why);

  net::Loop& loop;
  std::unique_ptr<net::Stream> stream;
  Connection* self = nullptr;
  State state = State::kGreeting;
  Peer peer;
  FrameReader reader;

  std::vector<Service> services;
  FlatHandler flat_handler;
  std::function<void(const Error&)> closed_handler;

  PendingCalls calls;
  size_t served_calls = 0;  // Requests of the peer without an answer.

  size_t flat_start = 0;
  std::string discarded;  // Holds flat frames for a closed connection while they are built.
  net::Loop::TimerId linger_timer = 0;

  bool accepted = false;  // Whether a server made it, and not a connector.
  // Set by a connector until the hello was accepted: the caller of connect() gets the error, so
  // that it need not be logged here.
  bool caller_reports = false;

  // Set by the connector or the server. on_gone is called once when the connection closes, before
  // the closed handler; on_lingered when the socket that lingered after that is closed, too.
  std::function<void(const FrameHeader&, Bytes message)> on_greeting;
  std::function<void(const Error&)> on_gone;
  std::function<void()> on_lingered;
};

}  // namespace rt::rpc
