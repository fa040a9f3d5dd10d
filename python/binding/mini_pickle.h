// Pickles of scalars and small tuples or lists of them, written and read without the pickle module:
// what most arguments and results of small tasks are. The output is ordinary pickle (protocol 5);
// what does not fit falls back to the real one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/bytes.h"
#include "python/binding/py.h"

namespace rt::python {

class MiniPickler {
 public:
  MiniPickler(uint8_t* out, size_t capacity);
  // False: not for us (a type, size or sharing we do not write); the output is void then. No Python
  // error is set.
  bool value(PyObject* object);
  bool tuple(PyObject* const* items, size_t count);
  // The form of a call with references: [items, None, positions].
  bool call(PyObject* const* items, size_t count, const uint32_t* ref_positions, size_t refs);
  size_t finish();  // writes STOP, returns the size

 private:
  bool put(uint8_t byte);
  bool put(const void* bytes, size_t n);
  bool integer(long long value);
  bool close_tuple(size_t count);
  uint8_t* const start_;
  uint8_t* at_;
  uint8_t* const end_;
  int depth_ = 0;
  bool list_seen_ = false;  // one list at most: a second one could be the same object
};

// The object, or null without a Python error when it is not a pickle of this small kind.
PyObject* mini_unpickle(Bytes pickle);

}  // namespace rt::python
