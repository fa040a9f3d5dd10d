// Python objects <-> values (worker/value.h). In-band bytes start with 0x80 (a pickle) or with
// kRefList (a list of nothing but references, which is not pickled at all). Buffers over which
// pickle offers protocol 5 travel out of band, so arrays are read as read-only views of the memory
// they arrived in.
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

inline constexpr uint8_t kRefList = 0x01;
inline constexpr uint8_t kRefGenerator =
    0x02;  // the result of a task with num_returns="dynamic": nothing but references, too
inline constexpr size_t kLargeBytes = 100 * 1024;  // larger buffers become objects of their own
inline constexpr size_t kReleaseGilBytes =
    256 * 1024;  // copies larger than this run without the GIL

// One encoded object: `parts` is valid as long as this lives. GIL needed for all of it.
class Serialized {
 public:
  Serialized() = default;
  Serialized(const Serialized&) = delete;

  // False with a Python error: TypeErrors of pickling get a report that names the object by its
  // `role`, others are as they were raised.
  bool encode(PyObject* object, const char* role = "the value");
  // Positional arguments without references, without making a tuple; false: use encode(), no error
  // is set.
  bool encode_small_call(PyObject* const* items, size_t count, const uint32_t* ref_positions,
                         size_t refs);
  void set_none() { parts.kind = worker::ValueKind::kNone; }
  bool is_large() const { return bytes_ > kReleaseGilBytes; }
  size_t buffer_bytes() const { return buffer_bytes_; }

  worker::ValueParts parts;

 private:
  bool encode_ref_list(PyObject* list);
  bool encode_pickle(PyObject* object, const char* role, bool plain, bool has_buffers);
  bool take_buffers(PyObject* list);
  void use_inline(size_t size);

  std::vector<worker::Ref> contained_;
  std::vector<Bytes> buffers_;
  PyPtr inband_;
  PyPtr pickle_buffers_;
  size_t bytes_ = 0, buffer_bytes_ = 0;
  uint8_t inline_[240];
};

// The object of a value; for errors null with the exception set. Takes what it keeps (keepalive).
PyObject* load_value(worker::Value& value);

// Whether an argument is so large that it should be an object of its own.
bool is_large_argument(PyObject* object);

bool add_serialize(PyObject* module);

}  // namespace rt::python
