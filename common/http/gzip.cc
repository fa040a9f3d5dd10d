#include "common/http/gzip.h"

namespace rt::http {
namespace {

// zlib takes the format with the size of the window: 16 more stands for gzip, 32 more for gzip or
// zlib, whichever the data begins with.
constexpr int kWindowBits = 15, kGzip = 16, kEither = 32, kMemory = 8;
constexpr size_t kBlockBytes = 16 << 10;

// The cast is safe, because zlib does not write to its input.
void give(z_stream* stream, std::string_view piece) {
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream->avail_in = static_cast<uInt>(piece.size());
}

}  // namespace

Packer::Packer() {
  RT_CHECK(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits + kGzip, kMemory,
                        Z_DEFAULT_STRATEGY) == Z_OK);
}
Packer::~Packer() { deflateEnd(&stream_); }

std::string Packer::add(std::string_view piece, bool is_last) {
  std::string packed;
  give(&stream_, piece);
  char data[kBlockBytes];
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = sizeof data;
    deflate(&stream_, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    packed.append(data, sizeof data - stream_.avail_out);
  } while (stream_.avail_out == 0);
  return packed;
}

Unpacker::Unpacker() { RT_CHECK(inflateInit2(&stream_, kWindowBits + kEither) == Z_OK); }
Unpacker::~Unpacker() { inflateEnd(&stream_); }

Status Unpacker::add(std::string_view piece, const Take& take) {
  if (is_whole_ && !piece.empty()) return make_error(Code::kInvalid, "data after the end");
  give(&stream_, piece);
  char data[kBlockBytes];
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = sizeof data;
    const int outcome = inflate(&stream_, Z_NO_FLUSH);
    is_whole_ = outcome == Z_STREAM_END;
    if (outcome != Z_OK && outcome != Z_STREAM_END && outcome != Z_BUF_ERROR)
      return make_error(Code::kInvalid, "damaged data");
    if (!take({data, sizeof data - stream_.avail_out}))
      return make_error(Code::kCancelled, "the reader took no more");
    if (is_whole_ && stream_.avail_in > 0) return make_error(Code::kInvalid, "data after the end");
  } while (stream_.avail_out == 0 && !is_whole_);
  return {};
}

}  // namespace rt::http
