#include "python/binding/mini_pickle.h"

#include <bit>
#include <cstring>

#include "common/base/pickle_reader.h"

namespace rt::python {
namespace {

// The pickle module writes values that are nested more deeply, or that have more items.
constexpr int kMaxDepth = 4;
constexpr size_t kMaxItems = 64;

uint64_t big_endian(double value) { return __builtin_bswap64(std::bit_cast<uint64_t>(value)); }

}  // namespace

MiniPickler::MiniPickler(uint8_t* out, size_t capacity)
    : start_(out), at_(out), end_(out + capacity - 1) {
  *at_++ = pickle::kProto;
  *at_++ = 5;
}

bool MiniPickler::put(uint8_t byte) {
  if (at_ == end_) return false;
  *at_++ = byte;
  return true;
}

bool MiniPickler::put(const void* bytes, size_t n) {
  if (static_cast<size_t>(end_ - at_) < n) return false;
  std::memcpy(at_, bytes, n);
  at_ += n;
  return true;
}

bool MiniPickler::integer(long long value) {
  if (value >= 0 && value < 256) return put(pickle::kBinInt1) && put(static_cast<uint8_t>(value));
  if (value >= INT32_MIN && value <= INT32_MAX) {
    int32_t narrow = static_cast<int32_t>(value);
    return put(pickle::kBinInt) && put(&narrow, 4);
  }
  return put(pickle::kLong1) && put(uint8_t{8}) && put(&value, 8);
}

bool MiniPickler::close_tuple(size_t count) {
  switch (count) {
    case 0: return put(pickle::kEmptyTuple);
    case 1: return put(pickle::kTuple1);
    case 2: return put(pickle::kTuple2);
    case 3: return put(pickle::kTuple3);
    default: return put(pickle::kTuple);
  }
}

bool MiniPickler::tuple(PyObject* const* items, size_t count) {
  if (count > kMaxItems || ++depth_ > kMaxDepth) return false;
  if (count > 3 && !put(pickle::kMark)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!value(items[i])) return false;
  }
  --depth_;
  return close_tuple(count);
}

bool MiniPickler::value(PyObject* object) {
  if (object == Py_None) return put(pickle::kNone);
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyLong_Type) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && integer(number);
  }
  if (type == &PyUnicode_Type) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    // A text with lone surrogates has no UTF-8, and the pickle module writes it.
    if (!text) return PyErr_Clear(), false;
    if (size > 255) return false;
    return put(pickle::kShortBinUnicode) && put(static_cast<uint8_t>(size)) && put(text, size);
  }
  if (type == &PyFloat_Type) {
    uint64_t bits = big_endian(PyFloat_AS_DOUBLE(object));
    return put(pickle::kBinFloat) && put(&bits, 8);
  }
  if (type == &PyBool_Type) return put(object == Py_True ? pickle::kNewTrue : pickle::kNewFalse);
  if (type == &PyBytes_Type) {
    size_t size = PyBytes_GET_SIZE(object);
    return size <= 255 && put(pickle::kShortBinBytes) && put(static_cast<uint8_t>(size)) &&
           put(PyBytes_AS_STRING(object), size);
  }
  if (type == &PyTuple_Type)
    return tuple(reinterpret_cast<PyTupleObject*>(object)->ob_item, PyTuple_GET_SIZE(object));
  if (type == &PyList_Type) {
    size_t count = PyList_GET_SIZE(object);
    if (list_seen_ || count > kMaxItems || ++depth_ > kMaxDepth) return false;
    list_seen_ = true;
    if (!put(pickle::kEmptyList)) return false;
    if (count == 0) return --depth_, true;
    if (!put(pickle::kMark)) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!value(PyList_GET_ITEM(object, i))) return false;
    }
    --depth_;
    return put(pickle::kAppends);
  }
  return false;
}

bool MiniPickler::call(PyObject* const* items, size_t count, const uint32_t* ref_positions,
                       size_t refs) {
  if (!put(pickle::kEmptyList) || !put(pickle::kMark)) return false;
  // References are in `items` as themselves; None is written in their place.
  if (count > kMaxItems) return false;
  ++depth_;
  if (count > 3 && !put(pickle::kMark)) return false;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (next < refs && ref_positions[next] == i) {
      ++next;
      if (!put(pickle::kNone)) return false;
    } else if (!value(items[i])) {
      return false;
    }
  }
  --depth_;
  if (!close_tuple(count) || !put(pickle::kNone)) return false;
  if (refs > 3 && !put(pickle::kMark)) return false;
  for (size_t i = 0; i < refs; ++i) {
    if (!integer(ref_positions[i])) return false;
  }
  return close_tuple(refs) && put(pickle::kAppends);
}

size_t MiniPickler::finish() {
  // The constructor kept room for it.
  *at_++ = pickle::kStop;
  return at_ - start_;
}

namespace {

// The builder of a PickleReader that makes Python objects of the small kinds.
class ObjectBuilder {
 public:
  using Value = PyObject*;
  using Stack = SmallPickleStack<PyObject*, 160>;
  using Marks = SmallPickleStack<size_t, 8>;

  PyObject* none() { return Py_NewRef(Py_None); }
  PyObject* boolean(bool value) { return Py_NewRef(value ? Py_True : Py_False); }
  PyObject* integer(int64_t value) { return made(PyLong_FromLongLong(value)); }
  PyObject* long_integer(std::string_view) { return nullptr; }
  PyObject* real(double value) { return made(PyFloat_FromDouble(value)); }
  PyObject* text(std::string_view bytes) {
    return made(PyUnicode_DecodeUTF8(bytes.data(), bytes.size(), "surrogatepass"));
  }
  PyObject* bytes(std::string_view bytes) {
    return made(PyBytes_FromStringAndSize(bytes.data(), bytes.size()));
  }
  PyObject* byte_array(std::string_view) { return nullptr; }
  PyObject* tuple(PyObject** items, size_t count) {
    PyObject* tuple = made(PyTuple_New(count));
    for (size_t i = 0; tuple && i < count; ++i) PyTuple_SET_ITEM(tuple, i, items[i]);
    return tuple;
  }
  PyObject* list() { return made(PyList_New(0)); }
  PyObject* dict() { return nullptr; }
  bool append(PyObject* list, PyObject** items, size_t count) {
    if (!PyList_CheckExact(list)) return false;
    for (size_t i = 0; i < count; ++i) {
      if (PyList_Append(list, items[i]) < 0) return PyErr_Clear(), false;
    }
    return true;
  }
  bool set_items(PyObject*, PyObject**, size_t) { return false; }
  // Nothing is kept for references, and a reference is refused.
  bool memoize(PyObject*) { return true; }
  bool put(uint32_t, PyObject*) { return false; }
  PyObject* get(uint32_t) { return nullptr; }
  void unknown(uint8_t) {}
  void drop(PyObject* object) { Py_DECREF(object); }

 private:
  static PyObject* made(PyObject* object) {
    if (!object) PyErr_Clear();
    return object;
  }
};

}  // namespace

PyObject* mini_unpickle(Bytes pickle) {
  ObjectBuilder builder;
  return PickleReader<ObjectBuilder>(pickle, builder).read();
}

}  // namespace rt::python
