// Private to common/rpc: cuts received bytes into frames.
//
// Bytes are read into a buffer all readers of a thread share, so that an idle connection holds
// none; what is left of an incomplete frame moves to a buffer of the reader's own, which grows with
// what arrives. The attachment of a "direct" frame is read to where the sink wants it. Threads:
// those of the loop; the sink must not lead back into its own reader.
#pragma once

#include <memory>

#include "common/rpc/frame.h"

namespace rt::rpc {

class FrameReader {
 public:
  enum class Route { kWhole, kDirect, kSkip };

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual Route route(const FrameHeader& header) = 0;
    virtual void on_frame(const FrameHeader& header, Bytes message, Bytes attachment) = 0;
    // Where the attachment goes: exactly its size, or empty to skip it. Valid until on_direct_end()
    // or abandon_direct().
    virtual MutableBytes on_direct_begin(const FrameHeader& header, Bytes message) = 0;
    virtual void on_direct_end(const FrameHeader& header) = 0;
    virtual bool wants_more() const = 0;  // false: everything else that arrives is dropped
    virtual bool can_wait() const { return false; }  // true: frames are kept until resume()
  };

  FrameReader(Sink& sink, uint32_t max_body) : sink_(sink), max_body_(max_body) {}
  void set_max_body(uint32_t max_body) { max_body_ = max_body; }

  // Where to read to; never empty.
  MutableBytes buffer();
  // `n` bytes were read there. An error ends the connection: kProtocol, kOutOfMemory.
  Status commit(size_t n);
  // Goes on with what was kept; to be called when can_wait() no longer says so. Errors as commit().
  Status resume();
  bool busy() const { return parsing_; }  // a sink is being called
  size_t kept_bytes() const { return kept_ ? own_.pending() : 0; }
  // The memory given by on_direct_begin() goes away: the rest of its attachment is dropped.
  void abandon_direct();

 private:
  struct Buffer {
    std::unique_ptr<uint8_t[]> data;
    size_t capacity = 0, begin = 0, end = 0;
    size_t pending() const { return end - begin; }
  };
  Result<size_t> parse(Bytes data);
  Status parse_own();
  size_t begin_direct(const FrameHeader& header, Bytes rest);
  Status keep(Bytes rest);
  bool make_room();
  bool grow(size_t capacity);

  Sink& sink_;
  uint32_t max_body_;
  Buffer own_;
  bool shared_ = false;  // the last buffer() was the thread's
  bool parsing_ = false;
  bool kept_ = false;           // whole frames may be in own_: the sink could wait
  size_t need_ = kHeaderBytes;  // bytes the incomplete frame needs to make progress
  size_t skip_ = 0;             // bytes still to be dropped
  MutableBytes direct_;         // what is still to be read of an attachment
  FrameHeader direct_header_;
};

}  // namespace rt::rpc
