// Private to common/rpc: a FrameReader cuts received bytes into frames.
//
// All readers of a thread read into one shared buffer, so that an idle connection holds no memory.
// The beginning of an incomplete frame moves to a buffer of the reader's own, which grows with what
// arrives. The attachment of a "direct" frame is read straight to where the sink wants it. Threads:
// those of the loop. A sink must not make its own reader read (RT_CHECKed).
#pragma once

#include <memory>

#include "common/rpc/frame.h"

namespace rt::rpc {

class FrameReader {
 public:
  // kWhole: the frame is passed on as a whole. kDirect: its attachment is read straight into the
  // memory that on_direct_begin() returns. kSkip: it is dropped.
  enum class Route { kWhole, kDirect, kSkip };

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual Route route(const FrameHeader& header) = 0;
    virtual void on_frame(const FrameHeader& header, Bytes message, Bytes attachment) = 0;
    // Returns memory of exactly the size of the attachment, which stays valid until on_direct_end()
    // or abandon_direct(); empty to drop the attachment.
    virtual MutableBytes on_direct_begin(const FrameHeader& header, Bytes message) = 0;
    virtual void on_direct_end(const FrameHeader& header) = 0;
    // False: everything else that arrives is dropped.
    virtual bool wants_more() const = 0;
    // True: frames are kept, undelivered, until resume().
    virtual bool withholds_frames() const { return false; }
  };

  FrameReader(Sink& sink, uint32_t max_body) : sink_(sink), max_body_(max_body) {}
  void set_max_body(uint32_t max_body) { max_body_ = max_body; }

  // Memory for the next bytes; never empty.
  MutableBytes buffer();
  // Takes `n` bytes that were read into buffer(). An error ends the connection: kProtocol or
  // kOutOfMemory.
  Status commit(size_t n);
  // Delivers the frames that were kept; to be called when withholds_frames() has become false.
  // The errors are those of commit().
  Status resume();
  bool busy() const { return parsing_; }  // Whether the sink is being called.
  size_t kept_bytes() const { return kept_ ? own_.pending() : 0; }
  // To be called before the memory returned by on_direct_begin() goes away: the rest of the
  // attachment is dropped.
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
  bool shared_ = false;  // Whether the last buffer() was the thread's shared one.
  bool parsing_ = false;
  bool kept_ = false;  // Whether own_ may hold whole frames, because the sink withheld them.
  size_t need_ = kHeaderBytes;  // With so many bytes the incomplete frame makes progress.
  size_t skip_ = 0;             // The bytes that are still to be dropped.
  MutableBytes direct_;         // The memory into which the rest of an attachment is to be read.
  FrameHeader direct_header_;
};

}  // namespace rt::rpc
