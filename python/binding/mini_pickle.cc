#include "python/binding/mini_pickle.h"

#include <bit>
#include <cstring>

namespace rt::python {
namespace {

constexpr uint8_t kProto = 0x80, kStop = '.', kNone = 'N', kTrue = 0x88, kFalse = 0x89, kInt1 = 'K',
                  kInt2 = 'M', kInt4 = 'J', kLong1 = 0x8a, kFloat = 'G', kText1 = 0x8c,
                  kText4 = 'X', kBytes1 = 'C', kBytes4 = 'B', kEmptyTuple = ')', kTuple1 = 0x85,
                  kTuple2 = 0x86, kTuple3 = 0x87, kMark = '(', kTuple = 't', kEmptyList = ']',
                  kAppends = 'e', kAppend = 'a', kMemoize = 0x94, kFrame = 0x95;
constexpr int kMaxDepth = 4;
constexpr size_t kMaxItems = 64;

uint64_t big_endian(double value) { return __builtin_bswap64(std::bit_cast<uint64_t>(value)); }

}  // namespace

MiniPickler::MiniPickler(uint8_t* out, size_t capacity)
    : start_(out), at_(out), end_(out + capacity - 1) {
  *at_++ = kProto;
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
  if (value >= 0 && value < 256) return put(kInt1) && put(static_cast<uint8_t>(value));
  if (value >= INT32_MIN && value <= INT32_MAX) {
    int32_t narrow = static_cast<int32_t>(value);
    return put(kInt4) && put(&narrow, 4);
  }
  return put(kLong1) && put(uint8_t{8}) && put(&value, 8);
}

bool MiniPickler::close_tuple(size_t count) {
  switch (count) {
    case 0: return put(kEmptyTuple);
    case 1: return put(kTuple1);
    case 2: return put(kTuple2);
    case 3: return put(kTuple3);
    default: return put(kTuple);
  }
}

bool MiniPickler::tuple(PyObject* const* items, size_t count) {
  if (count > kMaxItems || ++depth_ > kMaxDepth) return false;
  if (count > 3 && !put(kMark)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!value(items[i])) return false;
  }
  --depth_;
  return close_tuple(count);
}

bool MiniPickler::value(PyObject* object) {
  if (object == Py_None) return put(kNone);
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyLong_Type) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && integer(number);
  }
  if (type == &PyUnicode_Type) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    // The text has lone surrogates.
    if (!text) return PyErr_Clear(), false;
    if (size > 255) return false;
    return put(kText1) && put(static_cast<uint8_t>(size)) && put(text, size);
  }
  if (type == &PyFloat_Type) {
    uint64_t bits = big_endian(PyFloat_AS_DOUBLE(object));
    return put(kFloat) && put(&bits, 8);
  }
  if (type == &PyBool_Type) return put(object == Py_True ? kTrue : kFalse);
  if (type == &PyBytes_Type) {
    size_t size = PyBytes_GET_SIZE(object);
    return size <= 255 && put(kBytes1) && put(static_cast<uint8_t>(size)) &&
           put(PyBytes_AS_STRING(object), size);
  }
  if (type == &PyTuple_Type)
    return tuple(reinterpret_cast<PyTupleObject*>(object)->ob_item, PyTuple_GET_SIZE(object));
  if (type == &PyList_Type) {
    size_t count = PyList_GET_SIZE(object);
    if (list_seen_ || count > kMaxItems || ++depth_ > kMaxDepth) return false;
    list_seen_ = true;
    if (!put(kEmptyList)) return false;
    if (count == 0) return --depth_, true;
    if (!put(kMark)) return false;
    for (size_t i = 0; i < count; ++i) {
      if (!value(PyList_GET_ITEM(object, i))) return false;
    }
    --depth_;
    return put(kAppends);
  }
  return false;
}

bool MiniPickler::call(PyObject* const* items, size_t count, const uint32_t* ref_positions,
                       size_t refs) {
  if (!put(kEmptyList) || !put(kMark)) return false;
  // References are in `items` as themselves; None is written in their place.
  if (count > kMaxItems) return false;
  ++depth_;
  if (count > 3 && !put(kMark)) return false;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (next < refs && ref_positions[next] == i) {
      ++next;
      if (!put(kNone)) return false;
    } else if (!value(items[i])) {
      return false;
    }
  }
  --depth_;
  if (!close_tuple(count) || !put(kNone)) return false;
  if (refs > 3 && !put(kMark)) return false;
  for (size_t i = 0; i < refs; ++i) {
    if (!integer(ref_positions[i])) return false;
  }
  return close_tuple(refs) && put(kAppends);
}

size_t MiniPickler::finish() {
  // The constructor kept room for it.
  *at_++ = kStop;
  return at_ - start_;
}

namespace {

// A stack of values that drops what is left on it when parsing gives up.
class Stack {
 public:
  static constexpr size_t kCapacity = 160;
  ~Stack() {
    while (size_) Py_DECREF(items_[--size_]);
  }
  bool push(PyObject* owned) {
    if (!owned) return PyErr_Clear(), false;
    if (size_ == kCapacity) return Py_DECREF(owned), false;
    items_[size_++] = owned;
    return true;
  }
  PyObject* pop() { return items_[--size_]; }
  PyObject* top() { return items_[size_ - 1]; }
  size_t size() const { return size_; }
  bool make_tuple(size_t from) {
    size_t count = size_ - from;
    PyObject* tuple = PyTuple_New(count);
    if (!tuple) return PyErr_Clear(), false;
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple, i, items_[from + i]);
    size_ = from;
    return push(tuple);
  }
  bool append_to_list(size_t from) {
    if (from == 0 || !PyList_CheckExact(items_[from - 1])) return false;
    for (size_t i = from; i < size_; ++i) {
      if (PyList_Append(items_[from - 1], items_[i]) < 0) return PyErr_Clear(), false;
    }
    while (size_ > from) Py_DECREF(items_[--size_]);
    return true;
  }

 private:
  PyObject* items_[kCapacity];
  size_t size_ = 0;
};

struct Input {
  const uint8_t* at;
  const uint8_t* end;
  bool has(size_t n) const { return static_cast<size_t>(end - at) >= n; }
  template <class T>
  bool number(T* value) {
    if (!has(sizeof(T))) return false;
    std::memcpy(value, at, sizeof(T));
    at += sizeof(T);
    return true;
  }
  // Reads a length of type L and as many bytes.
  template <class L>
  bool sized(const char** bytes, size_t* size) {
    L length;
    if (!number(&length) || !has(length)) return false;
    *bytes = reinterpret_cast<const char*>(at);
    *size = length;
    at += length;
    return true;
  }
};

PyObject* read_long(Input& in) {
  uint8_t n;
  if (!in.number(&n) || n > 8 || !in.has(n)) return nullptr;
  int64_t value = n && (in.at[n - 1] & 0x80) ? -1 : 0;
  std::memcpy(&value, in.at, n);
  in.at += n;
  return PyLong_FromLongLong(value);
}

// The scalar of `op`; null when `op` is no scalar or its operand is malformed.
PyObject* read_scalar(uint8_t op, Input& in) {
  const char* bytes;
  size_t size;
  switch (op) {
    case kNone: return Py_NewRef(Py_None);
    case kTrue: return Py_NewRef(Py_True);
    case kFalse: return Py_NewRef(Py_False);
    case kInt1: {
      uint8_t v;
      return in.number(&v) ? PyLong_FromLong(v) : nullptr;
    }
    case kInt2: {
      uint16_t v;
      return in.number(&v) ? PyLong_FromLong(v) : nullptr;
    }
    case kInt4: {
      int32_t v;
      return in.number(&v) ? PyLong_FromLong(v) : nullptr;
    }
    case kLong1: return read_long(in);
    case kFloat: {
      uint64_t bits;
      return in.number(&bits) ? PyFloat_FromDouble(std::bit_cast<double>(__builtin_bswap64(bits)))
                              : nullptr;
    }
    case kText1:
      return in.sized<uint8_t>(&bytes, &size) ? PyUnicode_DecodeUTF8(bytes, size, "surrogatepass")
                                              : nullptr;
    case kText4:
      return in.sized<uint32_t>(&bytes, &size) ? PyUnicode_DecodeUTF8(bytes, size, "surrogatepass")
                                               : nullptr;
    case kBytes1:
      return in.sized<uint8_t>(&bytes, &size) ? PyBytes_FromStringAndSize(bytes, size) : nullptr;
    case kBytes4:
      return in.sized<uint32_t>(&bytes, &size) ? PyBytes_FromStringAndSize(bytes, size) : nullptr;
    case kEmptyTuple: return PyTuple_New(0);
    case kEmptyList: return PyList_New(0);
    default: return nullptr;
  }
}

}  // namespace

PyObject* mini_unpickle(Bytes pickle) {
  Input in{pickle.data(), pickle.data() + pickle.size()};
  if (!in.has(3) || in.at[0] != kProto) return nullptr;
  in.at += 2;
  Stack stack;
  size_t marks[8];
  int mark = 0;
  while (in.at < in.end) {
    uint8_t op = *in.at++;
    switch (op) {
      case kStop: return stack.size() == 1 && mark == 0 ? stack.pop() : nullptr;
      // No other opcode accepted here refers to the memo; a BINGET ends the parsing below.
      case kMemoize: break;
      case kFrame:
        if (!in.has(8)) return nullptr;
        in.at += 8;
        break;
      case kMark:
        if (mark == 8) return nullptr;
        marks[mark++] = stack.size();
        break;
      case kTuple:
        if (mark == 0 || !stack.make_tuple(marks[--mark])) return nullptr;
        break;
      case kAppends:
        if (mark == 0 || !stack.append_to_list(marks[--mark])) return nullptr;
        break;
      case kAppend:
        if (stack.size() < 2 || !stack.append_to_list(stack.size() - 1)) return nullptr;
        break;
      case kTuple1:
      case kTuple2:
      case kTuple3: {
        size_t count = op - kTuple1 + 1;
        if (stack.size() < count || !stack.make_tuple(stack.size() - count)) return nullptr;
        break;
      }
      default:
        if (!stack.push(read_scalar(op, in))) return nullptr;
    }
  }
  return nullptr;
}

}  // namespace rt::python
