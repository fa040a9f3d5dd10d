#include "common/rpc/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace rt::rpc {
namespace {

constexpr size_t kSharedBytes = 64 << 10;
constexpr size_t kMinOwnBytes = 16 << 10;
constexpr size_t kGrowthBytes = 256 << 10;

// The buffer is marked busy while frames in it are handled: when a handler runs the loop for other
// connections of the thread, these read into buffers of their own.
struct SharedBuffer {
  std::unique_ptr<uint8_t[]> data = std::make_unique_for_overwrite<uint8_t[]>(kSharedBytes);
  bool busy = false;
};
SharedBuffer& shared_buffer() {
  thread_local SharedBuffer buffer;
  return buffer;
}

}  // namespace

MutableBytes FrameReader::buffer() {
  RT_CHECK(!parsing_);  // A handler must not pump the connection that called it.
  shared_ = false;
  if (!direct_.empty()) return direct_;
  if (own_.pending() == 0) {
    own_ = {};
    need_ = kHeaderBytes;
    if (!shared_buffer().busy) {
      shared_ = true;
      return {shared_buffer().data.get(), kSharedBytes};
    }
  }
  // There is no memory. One byte is read to where it does no harm, and commit() reports the error.
  static thread_local uint8_t nowhere;
  if (!make_room()) return {&nowhere, 1};
  return {own_.data.get() + own_.end, own_.capacity - own_.end};
}

Status FrameReader::commit(size_t n) {
  if (!direct_.empty()) {
    direct_ = direct_.subspan(n);
    if (direct_.empty()) sink_.on_direct_end(direct_header_);
    return {};
  }
  parsing_ = true;
  Status status;
  if (shared_) {
    SharedBuffer& shared = shared_buffer();
    shared.busy = true;
    Bytes data(shared.data.get(), n);
    Result<size_t> used = parse(data);
    status = used ? keep(data.subspan(*used)) : Status(std::move(used).error());
    shared.busy = false;
  } else if (own_.end + n > own_.capacity) {
    status = make_error(Code::kOutOfMemory, "no memory for a frame that is being received");
  } else {
    own_.end += n;
    status = parse_own();
  }
  parsing_ = false;
  return status;
}

Status FrameReader::resume() {
  if (!kept_) return {};
  parsing_ = true;
  Status status = parse_own();
  parsing_ = false;
  return status;
}

Status FrameReader::parse_own() {
  RT_ASSIGN(size_t used, parse({own_.data.get() + own_.begin, own_.pending()}));
  own_.begin += used;
  if (own_.pending() == 0) own_ = {};
  return {};
}

Result<size_t> FrameReader::parse(Bytes data) {
  size_t at = 0;
  need_ = kHeaderBytes;
  kept_ = false;
  while (sink_.wants_more()) {
    Bytes rest = data.subspan(at);
    if (skip_ > 0) {
      size_t n = std::min(skip_, rest.size());
      skip_ -= n;
      at += n;
      if (skip_ > 0) return at;
      continue;
    }
    if (rest.size() < kHeaderBytes) return at;
    RT_ASSIGN(FrameHeader header, decode_header(rest.data(), max_body_));
    Route route = sink_.route(header);
    if (route == Route::kSkip) {
      at += kHeaderBytes;
      skip_ = header.body_bytes;
      continue;
    }
    need_ = kHeaderBytes + (route == Route::kDirect ? header.message_bytes : header.body_bytes);
    if (rest.size() < need_) return at;
    if (sink_.withholds_frames()) {
      kept_ = true;
      need_ = rest.size() * 2;  // Doubled, so that the buffer grows in few steps.
      return at;
    }
    if (route == Route::kDirect) {
      at += begin_direct(header, rest);
      if (!direct_.empty()) return at;
    } else {
      sink_.on_frame(header, rest.subspan(kHeaderBytes, header.message_bytes),
                     rest.subspan(kHeaderBytes + header.message_bytes,
                                  header.body_bytes - header.message_bytes));
      at += need_;
    }
    need_ = kHeaderBytes;
  }
  return data.size();
}

// Returns how much of `rest` was used up: header, message, and what has arrived of the attachment.
size_t FrameReader::begin_direct(const FrameHeader& header, Bytes rest) {
  size_t front = kHeaderBytes + header.message_bytes;
  size_t attachment = header.body_bytes - header.message_bytes;
  MutableBytes target =
      sink_.on_direct_begin(header, rest.subspan(kHeaderBytes, header.message_bytes));
  if (target.empty()) {
    skip_ = attachment;
    return front;
  }
  size_t here = std::min(attachment, rest.size() - front);
  std::memcpy(target.data(), rest.data() + front, here);
  direct_header_ = header;
  direct_ = target.subspan(here);
  if (direct_.empty()) sink_.on_direct_end(header);
  return front + here;
}

void FrameReader::abandon_direct() {
  skip_ += direct_.size();
  direct_ = {};
}

Status FrameReader::keep(Bytes rest) {
  if (rest.empty()) return {};
  if (!grow(std::clamp(need_, kMinOwnBytes, kGrowthBytes)))
    return make_error(Code::kOutOfMemory, "no memory for a frame that is being received");
  std::memcpy(own_.data.get(), rest.data(), rest.size());
  own_.end = rest.size();
  return {};
}

// Makes room for what the incomplete frame needs, but not far ahead of what has arrived: a peer
// that merely announces a large frame gets no memory for it. False: out of memory.
bool FrameReader::make_room() {
  if (own_.begin > 0 && (own_.end == own_.capacity || own_.capacity - own_.begin < need_)) {
    std::memmove(own_.data.get(), own_.data.get() + own_.begin, own_.pending());
    own_.end -= own_.begin;
    own_.begin = 0;
  }
  if (own_.end < own_.capacity) return true;
  return grow(std::max(kMinOwnBytes, std::min(need_, std::max(kGrowthBytes, own_.capacity * 4))));
}

bool FrameReader::grow(size_t capacity) {
  std::unique_ptr<uint8_t[]> data(new (std::nothrow) uint8_t[capacity]);
  if (!data) return false;
  size_t pending = own_.pending();
  if (pending > 0) std::memcpy(data.get(), own_.data.get() + own_.begin, pending);
  own_ = {std::move(data), capacity, 0, pending};
  return true;
}

}  // namespace rt::rpc
