#include "python/binding/plain_values.h"

#include <algorithm>
#include <msgpack.hpp>

#include "python/binding/object_ref.h"

namespace rt::python {
namespace {

struct StringWriter {
  std::string& out;
  void write(const char* data, size_t size) { out.append(data, size); }
};

class Encoder {
 public:
  Encoder(std::string& out, std::vector<worker::Ref>& refs)
      : writer_{out}, packer_(writer_), refs_(refs) {}

  bool value(PyObject* object) {
    if (object == Py_None) return packer_.pack_nil(), true;
    if (PyBool_Check(object)) return packer_.pack(object == Py_True), true;
    if (PyLong_Check(object)) return integer(object);
    if (PyFloat_Check(object)) return packer_.pack_double(PyFloat_AS_DOUBLE(object)), true;
    if (PyUnicode_Check(object)) return text(object);
    if (PyBytes_Check(object)) return bytes(object);
    if (is_object_ref(object)) return reference(object);
    if (!PyList_Check(object) && !PyTuple_Check(object) && !PyDict_Check(object))
      return refuse(object);
    if (Py_EnterRecursiveCall(" while packing a value for another language")) return false;
    bool ok = PyDict_Check(object) ? dict(object) : sequence(object);
    Py_LeaveRecursiveCall();
    return ok;
  }

 private:
  bool integer(PyObject* object) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (number == -1 && PyErr_Occurred()) return false;
    if (!overflow) return packer_.pack(static_cast<int64_t>(number)), true;
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_SetString(PyExc_OverflowError, "an integer for another language must fit 64 bits");
      return false;
    }
    return packer_.pack(static_cast<uint64_t>(large)), true;
  }
  static bool fits(size_t size) {
    if (size <= UINT32_MAX) return true;
    PyErr_SetString(
        PyExc_OverflowError,
        "text, bytes and containers for another language hold at most 2**32 - 1 elements");
    return false;
  }
  bool text(PyObject* object) {
    Py_ssize_t size;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (!data || !fits(size)) return false;
    packer_.pack_str(static_cast<uint32_t>(size));
    packer_.pack_str_body(data, static_cast<uint32_t>(size));
    return true;
  }
  bool bytes(PyObject* object) {
    size_t size = PyBytes_GET_SIZE(object);
    if (!fits(size)) return false;
    packer_.pack_bin(static_cast<uint32_t>(size));
    packer_.pack_bin_body(PyBytes_AS_STRING(object), static_cast<uint32_t>(size));
    return true;
  }
  bool reference(PyObject* object) {
    const worker::Ref& ref = as_object_ref(object)->ref;
    if (!ref) {
      PyErr_SetString(PyExc_ValueError,
                      "an ObjectRef made from bytes alone has no owner and cannot be passed on");
      return false;
    }
    refs_.push_back(ref);
    std::string_view id = ref.id().view();
    packer_.pack_str(static_cast<uint32_t>(id.size()));
    packer_.pack_str_body(id.data(), static_cast<uint32_t>(id.size()));
    return true;
  }
  bool sequence(PyObject* object) {
    PyPtr items(PySequence_Fast(object, ""));
    if (!items || !fits(PySequence_Fast_GET_SIZE(items.get()))) return false;
    packer_.pack_array(static_cast<uint32_t>(PySequence_Fast_GET_SIZE(items.get())));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      if (!value(PySequence_Fast_GET_ITEM(items.get(), i))) return false;
    }
    return true;
  }
  bool dict(PyObject* object) {
    if (!fits(PyDict_Size(object))) return false;
    packer_.pack_map(static_cast<uint32_t>(PyDict_Size(object)));
    PyObject *key, *item;
    Py_ssize_t at = 0;
    while (PyDict_Next(object, &at, &key, &item)) {
      if (!value(key) || !value(item)) return false;
    }
    return true;
  }
  static bool refuse(PyObject* object) {
    PyErr_Format(PyExc_TypeError,
                 "A value of type %s cannot go to a program of another language: None, bool, int, "
                 "float, str, bytes, list, tuple, dict and ObjectRef "
                 "can. Convert it first.",
                 Py_TYPE(object)->tp_name);
    return false;
  }

  StringWriter writer_;
  msgpack::packer<StringWriter> packer_;
  std::vector<worker::Ref>& refs_;
};

class Decoder {
 public:
  explicit Decoder(const std::vector<worker::Ref>& refs) : refs_(refs) {}

  // Keys must be hashable, so arrays in keys become tuples.
  PyObject* object(const msgpack::object& o, bool is_key = false) {
    switch (o.type) {
      case msgpack::type::NIL: Py_RETURN_NONE;
      case msgpack::type::BOOLEAN: return PyBool_FromLong(o.via.boolean);
      case msgpack::type::POSITIVE_INTEGER: return PyLong_FromUnsignedLongLong(o.via.u64);
      case msgpack::type::NEGATIVE_INTEGER: return PyLong_FromLongLong(o.via.i64);
      case msgpack::type::FLOAT32:
      case msgpack::type::FLOAT64: return PyFloat_FromDouble(o.via.f64);
      case msgpack::type::STR: return text({o.via.str.ptr, o.via.str.size});
      case msgpack::type::BIN: return py_bytes({o.via.bin.ptr, o.via.bin.size});
      case msgpack::type::ARRAY: return array(o.via.array, is_key);
      case msgpack::type::MAP: return map(o.via.map);
      default:
        PyErr_SetString(PyExc_ValueError,
                        "a value of another language holds a msgpack extension type, which has no "
                        "Python counterpart");
        return nullptr;
    }
  }

 private:
  PyObject* text(std::string_view s) {
    if (!refs_.empty() && s.size() == ObjectId::kSize) {
      auto ref = std::find_if(refs_.begin(), refs_.end(),
                              [&](const worker::Ref& r) { return r.id().view() == s; });
      if (ref != refs_.end()) return new_object_ref(*ref);
    }
    PyObject* decoded = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), nullptr);
    if (!decoded && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
      PyErr_SetString(
          PyExc_ValueError,
          "a string of another language is not UTF-8 text: C++ passes bytes as std::vector<char>");
    }
    return decoded;
  }
  PyObject* array(const msgpack::object_array& items, bool is_key) {
    PyPtr out(is_key ? PyTuple_New(items.size) : PyList_New(items.size));
    for (uint32_t i = 0; out && i < items.size; ++i) {
      PyObject* item = object(items.ptr[i], is_key);
      if (!item) return nullptr;
      is_key ? PyTuple_SET_ITEM(out.get(), i, item) : PyList_SET_ITEM(out.get(), i, item);
    }
    return out.release();
  }
  PyObject* map(const msgpack::object_map& items) {
    PyPtr out(PyDict_New());
    for (uint32_t i = 0; out && i < items.size; ++i) {
      PyPtr key(object(items.ptr[i].key, true)), item(key ? object(items.ptr[i].val) : nullptr);
      if (!item || PyDict_SetItem(out.get(), key.get(), item.get()) < 0) return nullptr;
    }
    return out.release();
  }

  const std::vector<worker::Ref>& refs_;
};

}  // namespace

bool PlainValue::encode(PyObject* object) {
  if (!Encoder(bytes, contained).value(object)) return false;
  parts.kind = worker::ValueKind::kMsgpack;
  parts.inband = as_bytes(bytes);
  parts.contained = contained;
  return true;
}

PyObject* load_plain_value(const worker::Value& value) {
  constexpr size_t kDepth = 500;
  try {
    auto in_place = [](msgpack::type::object_type, size_t, void*) { return true; };
    const char* data = reinterpret_cast<const char*>(value.inband.data());
    size_t size = value.inband.size();
    // Every element takes at least one byte.
    msgpack::unpack_limit limit(size, size, size, size, size, kDepth);
    msgpack::object_handle handle = msgpack::unpack(data, size, in_place, nullptr, limit);
    return Decoder(value.contained).object(handle.get());
  } catch (const std::exception& e) {
    // msgpack reports malformed input by exceptions.
    return PyErr_Format(PyExc_ValueError, "a value of another language cannot be read: %s",
                        e.what());
  }
}

bool PlainCallArgs::build(worker::Worker&, PyObject* const* items, size_t count,
                          PyObject* keyword_names) {
  if (keyword_names && PyTuple_GET_SIZE(keyword_names) > 0) {
    PyErr_SetString(PyExc_TypeError,
                    "Cross language remote functions do not take keyword arguments.");
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    if (is_object_ref(items[i])) {
      const worker::Ref& ref = as_object_ref(items[i])->ref;
      if (!ref) {
        PyErr_SetString(
            PyExc_ValueError,
            "an ObjectRef made from bytes alone has no owner and cannot be an argument");
        return false;
      }
      args_.push_back({.value = nullptr, .ref = &ref});
      continue;
    }
    values_.push_back(std::make_unique<PlainValue>());
    if (!values_.back()->encode(items[i])) return false;
    bytes_ += values_.back()->bytes.size();
    args_.push_back({.value = &values_.back()->parts, .ref = nullptr});
  }
  return true;
}

bool PlainCallArgs::build(worker::Worker& worker, PyObject* args, PyObject* kwargs) {
  if (kwargs && kwargs != Py_None && PyDict_Size(kwargs) > 0) {
    PyErr_SetString(PyExc_TypeError, "Cross language actor classes do not take keyword arguments.");
    return false;
  }
  if (!PyTuple_Check(args)) return PyErr_Format(PyExc_TypeError, "args must be a tuple") != nullptr;
  return build(worker, reinterpret_cast<PyTupleObject*>(args)->ob_item, PyTuple_GET_SIZE(args),
               nullptr);
}

namespace {

PyObject* plain_value(PyObject*, PyObject* object) {
  auto value = std::make_unique<PlainValue>();
  if (!value->encode(object)) return nullptr;
  auto* result = PyObject_New(PlainResultObject, &PlainResultType);
  if (result) result->value = value.release();
  return reinterpret_cast<PyObject*>(result);
}

void result_dealloc(PyObject* self) {
  delete reinterpret_cast<PlainResultObject*>(self)->value;
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef kPlainValuesFunctions[] = {
    {"plain_value", plain_value, METH_O,
     "A result that programs of every language can read. TypeError for what has no plain form."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject PlainResultType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.PlainResult",
    .tp_basicsize = sizeof(PlainResultObject),
    .tp_dealloc = result_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A result for a caller of another language, packed.",
};

bool add_plain_values(PyObject* module) {
  return PyType_Ready(&PlainResultType) == 0 &&
         PyModule_AddFunctions(module, kPlainValuesFunctions) == 0;
}

}  // namespace rt::python
