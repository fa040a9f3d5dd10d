// Writes and reads pickles of scalars, and of small tuples or lists of them, without the pickle
// module, because most arguments and results of small tasks are of this kind. The output is
// ordinary pickle (protocol 5). What does not fit falls back to the pickle module.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/bytes.h"
#include "python/binding/py.h"

namespace rt::python {

class MiniPickler {
 public:
  MiniPickler(uint8_t* out, size_t capacity);
  // False when the object has a type, size or sharing that this does not write. The output is then
  // void, and no Python error is set.
  bool value(PyObject* object);
  bool tuple(PyObject* const* items, size_t count);
  // The form of a call with references: [items, None, positions].
  bool call(PyObject* const* items, size_t count, const uint32_t* ref_positions, size_t refs);
  // Writes STOP and returns the size.
  size_t finish();

 private:
  bool put(uint8_t byte);
  bool put(const void* bytes, size_t n);
  bool integer(long long value);
  bool close_tuple(size_t count);
  uint8_t* const start_;
  uint8_t* at_;
  uint8_t* const end_;
  int depth_ = 0;
  // At most one list is written, because a second one could be the same object.
  bool list_seen_ = false;
};

// The object, or null without a Python error when the pickle is not of this small kind.
PyObject* mini_unpickle(Bytes pickle);

}  // namespace rt::python
