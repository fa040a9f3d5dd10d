// Python objects <-> values (worker/value.h). The in-band bytes start with 0x80 (a pickle), or
// with kRefList or kRefGenerator (nothing but references, which are not pickled at all). Buffers
// that pickle offers by protocol 5 travel out of band, so that arrays are read as read-only views
// of the memory they arrived in.
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

inline constexpr uint8_t kRefList = 0x01;
// The result of a task with num_returns="dynamic", which holds nothing but references as well.
inline constexpr uint8_t kRefGenerator = 0x02;
// Arguments with a larger buffer become objects of their own.
inline constexpr size_t kLargeBytes = 100 * 1024;
// Larger copies run without the GIL.
inline constexpr size_t kReleaseGilBytes = 256 * 1024;

// One encoded object. `parts` points into this object and is valid as long as it lives. Every
// method needs the GIL.
class Serialized {
 public:
  Serialized() = default;
  Serialized(const Serialized&) = delete;

  // False with a Python error. A TypeError of pickling is replaced by a report that names the
  // object by its `role`; other exceptions stay as they were raised.
  bool encode(PyObject* object, const char* role = "the value");
  // Encodes positional arguments without making a tuple; `ref_positions` are the indexes of the
  // references among them. False, without a Python error: encode() must be used.
  bool encode_small_call(PyObject* const* items, size_t count, const uint32_t* ref_positions,
                         size_t refs);
  void set_none() { parts.kind = worker::ValueKind::kNone; }
  bool is_large() const { return bytes_ > kReleaseGilBytes; }

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
  size_t bytes_ = 0;
  uint8_t inline_[240];
};

// The Python object of a value; for an error null with the exception set. Takes over what it keeps
// (keepalive).
PyObject* load_value(worker::Value& value);

// Whether an argument is so large that it becomes an object of its own.
bool is_large_argument(PyObject* object);

bool add_serialize(PyObject* module);

}  // namespace rt::python
