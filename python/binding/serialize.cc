#include "python/binding/serialize.h"

#include <cstring>
#include <new>

#include "python/binding/mini_pickle.h"
#include "python/binding/object_ref.h"
#include "python/binding/plain_values.h"
#include "python/binding/runtime.h"
#include "worker/core/value_codec.h"

namespace rt::python {
namespace {

using worker::ValueKind;

PyObject* g_dumps = nullptr;        // pickle.dumps
PyObject* g_loads = nullptr;        // pickle.loads
PyObject* g_cloud_dumps = nullptr;  // cloudpickle.dumps, imported on first use.
PyObject* g_protocol = nullptr;     // 5
PyObject* g_dumps_names = nullptr;  // ("protocol", "buffer_callback")
PyObject* g_loads_names = nullptr;  // ("buffers",)
PyTypeObject* g_ndarray = nullptr;
// Pickles by reference to ray.actor and its own __reduce__.
PyTypeObject* g_actor_handle = nullptr;

// A read-only buffer over memory that `keepalive` pins.
struct ValueBufferObject {
  PyObject_HEAD Bytes bytes;
  Keepalive keepalive;
};

void buffer_dealloc(PyObject* self) {
  auto* buffer = reinterpret_cast<ValueBufferObject*>(self);
  buffer->keepalive.~Keepalive();
  Py_TYPE(self)->tp_free(self);
}

int buffer_get(PyObject* self, Py_buffer* view, int flags) {
  auto* buffer = reinterpret_cast<ValueBufferObject*>(self);
  return PyBuffer_FillInfo(view, self, const_cast<uint8_t*>(buffer->bytes.data()),
                           buffer->bytes.size(), 1, flags);
}

PyBufferProcs kBufferProcs = {.bf_getbuffer = buffer_get};
PyTypeObject ValueBufferType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ValueBuffer",
    .tp_basicsize = sizeof(ValueBufferObject),
    .tp_dealloc = buffer_dealloc,
    .tp_as_buffer = &kBufferProcs,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Read-only memory of an object; pins it.",
};

PyObject* new_buffer(Bytes bytes, const Keepalive& keepalive) {
  auto* buffer = PyObject_New(ValueBufferObject, &ValueBufferType);
  if (!buffer) return nullptr;
  buffer->bytes = bytes;
  new (&buffer->keepalive) Keepalive(keepalive);
  return reinterpret_cast<PyObject*>(buffer);
}

bool plain_array(PyObject* object) {
  PyPtr dtype(PyObject_GetAttrString(object, "dtype"));
  PyPtr has_object(dtype ? PyObject_GetAttrString(dtype.get(), "hasobject") : nullptr);
  if (!has_object) return PyErr_Clear(), false;
  return has_object.get() == Py_False;
}

bool is_array(PyTypeObject* type) {
  if (type == g_ndarray) return true;
  if (g_ndarray || std::strcmp(type->tp_name, "numpy.ndarray") != 0) return false;
  g_ndarray = type;
  return true;
}

// Whether `object` holds nothing but exact built-in types, plain arrays and this binding's
// references. Only those may go through the plain pickler: it pickles instances of classes of
// __main__ by reference, which then fails in the worker.
class PlainCheck {
 public:
  bool plain(PyObject* object) {
    if (--budget_ < 0) return false;
    PyTypeObject* type = Py_TYPE(object);
    if (object == Py_None || type == &PyLong_Type || type == &PyUnicode_Type ||
        type == &PyFloat_Type || type == &PyBytes_Type || type == &PyBool_Type ||
        type == &PyComplex_Type || type == &PyByteArray_Type || type == &ObjectRefType) {
      return true;
    }
    if (type == &PyTuple_Type)
      return all(reinterpret_cast<PyTupleObject*>(object)->ob_item, PyTuple_GET_SIZE(object));
    if (type == &PyList_Type)
      return all(reinterpret_cast<PyListObject*>(object)->ob_item, PyList_GET_SIZE(object));
    if (type == &PyDict_Type) return dict(object);
    if (type == &PySet_Type || type == &PyFrozenSet_Type) return set(object);
    if (is_array(type)) return has_buffers_ = true, plain_array(object);
    return type == g_actor_handle;
  }
  bool has_buffers() const { return has_buffers_; }

 private:
  bool all(PyObject* const* items, Py_ssize_t count) {
    if (++depth_ > 50) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!plain(items[i])) return false;
    }
    --depth_;
    return true;
  }
  bool dict(PyObject* object) {
    if (++depth_ > 50) return false;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(object, &at, &key, &value)) {
      if (!plain(key) || !plain(value)) return false;
    }
    --depth_;
    return true;
  }
  bool set(PyObject* object) {
    if (++depth_ > 50) return false;
    PyPtr iterator(PyObject_GetIter(object));
    while (iterator) {
      PyPtr key(PyIter_Next(iterator.get()));
      if (!key) break;
      if (!plain(key.get())) return false;
    }
    --depth_;
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
  }

  int budget_ = 1'000'000;
  int depth_ = 0;
  bool has_buffers_ = false;
};

PyObject* cloud_dumps() {
  if (!g_cloud_dumps) g_cloud_dumps = import_attribute("ray.cloudpickle", "dumps").release();
  return g_cloud_dumps;
}

// Replaces the current error of a failed pickling, if it is a TypeError, by one that says which
// member is to blame. Always returns false.
bool explain_failure(PyObject* object, const char* role) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyPtr t(type), v(value), tb(traceback);
  PyPtr args(Py_BuildValue("(sOO)", role, object, v.get()));
  if (args) call_python("ray._private.serialization", "raise_unserializable", args.get());
  return false;
}

PyObject* load_ref_list(const std::vector<worker::Ref>& refs) {
  PyObject* list = PyList_New(refs.size());
  if (!list) return nullptr;
  for (size_t i = 0; i < refs.size(); ++i) {
    PyObject* ref = new_object_ref(refs[i]);
    if (!ref) return Py_DECREF(list), nullptr;
    PyList_SET_ITEM(list, i, ref);
  }
  return list;
}

PyObject* load_ref_generator(const std::vector<worker::Ref>& refs) {
  PyPtr list(load_ref_list(refs));
  PyPtr args(list ? PyTuple_Pack(1, list.get()) : nullptr);
  return args ? call_python("ray._private.generators", "DynamicObjectRefGenerator", args.get())
                    .release()
              : nullptr;
}

PyObject* load_pickle(worker::Value& value) {
  if (value.buffers.empty() && !value.inband.empty()) {
    if (value.inband[0] == kRefList) return load_ref_list(value.contained);
    if (value.inband[0] == kRefGenerator) return load_ref_generator(value.contained);
    if (value.inband.size() <= 512) {
      if (PyObject* object = mini_unpickle(value.inband)) return object;
    }
  }
  RestoreRefs restore(&value.contained);
  PyPtr pickle(
      PyMemoryView_FromMemory(reinterpret_cast<char*>(const_cast<uint8_t*>(value.inband.data())),
                              value.inband.size(), PyBUF_READ));
  if (!pickle) return nullptr;
  if (value.buffers.empty()) return PyObject_CallOneArg(g_loads, pickle.get());
  PyPtr buffers(PyList_New(value.buffers.size()));
  for (size_t i = 0; buffers && i < value.buffers.size(); ++i) {
    PyObject* buffer = new_buffer(value.buffers[i], value.keepalive);
    if (!buffer) return nullptr;
    PyList_SET_ITEM(buffers.get(), i, buffer);
  }
  if (!buffers) return nullptr;
  PyObject* args[] = {pickle.get(), buffers.get()};
  return PyObject_Vectorcall(g_loads, args, 1, g_loads_names);
}

void set_exit(PyObject* fields, const proto::ExitInfo& exit) {
  set_item(fields, "exit_kind", PyLong_FromLong(exit.kind()));
  set_item(fields, "exit_code", PyLong_FromLong(exit.exit_code()));
  set_item(fields, "exit_signal", PyLong_FromLong(exit.signal()));
  set_item(fields, "exit_pid", PyLong_FromLong(exit.pid()));
  set_item(fields, "exit_message", py_text(exit.message()));
  set_item(fields, "creation_error", py_bytes(exit.creation_error()));
}

// Builds the exception in Python (ray._private.errors), raises it and returns null. When that
// fails, the exception of the failure is raised instead.
PyObject* raise_error_value(Bytes inband) {
  proto::ErrorValue error;
  if (!error.ParseFromArray(inband.data(), inband.size()))
    return raise(make_error(Code::kInternal, "malformed error value"));
  PyPtr fields(PyDict_New());
  if (!fields) return nullptr;
  PyObject* f = fields.get();
  set_item(f, "code", PyLong_FromLong(error.code()));
  set_item(f, "message", py_text(error.message()));
  set_item(f, "function_name", py_text(error.function_name()));
  set_item(f, "traceback", py_text(error.traceback()));
  set_item(f, "pid", PyLong_FromLong(error.pid()));
  set_item(f, "ip", py_text(error.ip()));
  set_item(f, "actor_repr", py_text(error.actor_repr()));
  set_item(f, "actor_id", py_text(to_hex(error.actor_id())));
  set_item(f, "cause_class", py_text(error.cause_class()));
  set_item(f, "cause", py_bytes(error.cause()));
  set_item(f, "task_id", py_text(to_hex(error.task_id())));
  set_item(f, "object_id", py_text(to_hex(error.object_id())));
  set_item(f, "proctitle", py_text(error.proctitle()));
  set_item(f, "language", PyLong_FromLong(error.language()));
  if (error.has_exit()) set_exit(f, error.exit());
  if (PyErr_Occurred()) return nullptr;
  PyPtr args(PyTuple_Pack(1, f));
  PyPtr exception = call_python("ray._private.errors", "from_error_value", args.get());
  if (exception)
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return nullptr;
}

}  // namespace

bool is_large_argument(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyBytes_Type) return static_cast<size_t>(PyBytes_GET_SIZE(object)) > kLargeBytes;
  if (!type->tp_as_buffer || !type->tp_as_buffer->bf_getbuffer) return false;
  if (is_array(type) && !plain_array(object)) return false;
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) < 0) return PyErr_Clear(), false;
  bool large = static_cast<size_t>(view.len) > kLargeBytes;
  PyBuffer_Release(&view);
  return large;
}

void Serialized::use_inline(size_t size) {
  parts.kind = ValueKind::kPickle;
  parts.inband = {inline_, size};
  bytes_ = size;
}

bool Serialized::encode_small_call(PyObject* const* items, size_t count,
                                   const uint32_t* ref_positions, size_t refs) {
  MiniPickler mini(inline_, sizeof inline_);
  bool ok = refs ? mini.call(items, count, ref_positions, refs) : mini.tuple(items, count);
  if (ok) use_inline(mini.finish());
  return ok;
}

bool Serialized::encode_ref_list(PyObject* list) {
  size_t count = PyList_GET_SIZE(list);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!is_object_ref(item) || !as_object_ref(item)->ref) return false;
  }
  contained_.reserve(count);
  for (size_t i = 0; i < count; ++i)
    contained_.push_back(as_object_ref(PyList_GET_ITEM(list, i))->ref);
  inline_[0] = kRefList;
  use_inline(1);
  parts.contained = contained_;
  return true;
}

bool Serialized::encode(PyObject* object, const char* role) {
  if (object == Py_None) return set_none(), true;
  if (PyBytes_CheckExact(object)) {
    inband_ = PyPtr::borrow(object);
    parts.kind = ValueKind::kRaw;
    parts.inband = {reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(object)),
                    static_cast<size_t>(PyBytes_GET_SIZE(object))};
    bytes_ = parts.inband.size();
    return true;
  }
  MiniPickler mini(inline_, sizeof inline_);
  if (mini.value(object)) return use_inline(mini.finish()), true;
  if (PyList_CheckExact(object) && PyList_GET_SIZE(object) > 0 && encode_ref_list(object))
    return true;
  if (Py_IS_TYPE(object, &PlainResultType)) {
    inband_ = PyPtr::borrow(object);
    const PlainValue& value = *reinterpret_cast<PlainResultObject*>(object)->value;
    parts = value.parts;
    bytes_ = value.bytes.size();
    return true;
  }
  PlainCheck check;
  bool plain = check.plain(object);
  return encode_pickle(object, role, plain, !plain || check.has_buffers());
}

bool Serialized::encode_pickle(PyObject* object, const char* role, bool plain, bool has_buffers) {
  PyObject* dumps = plain ? g_dumps : cloud_dumps();
  if (!dumps) return false;
  PyPtr buffers;
  {
    CollectRefs collect(&contained_);
    if (has_buffers) {
      buffers = PyPtr(PyList_New(0));
      PyPtr append(buffers ? PyObject_GetAttrString(buffers.get(), "append") : nullptr);
      if (!append) return false;
      PyObject* args[] = {object, g_protocol, append.get()};
      inband_ = PyPtr(PyObject_Vectorcall(dumps, args, 1, g_dumps_names));
    } else {
      PyObject* args[] = {object, g_protocol};
      inband_ = PyPtr(PyObject_Vectorcall(dumps, args, 2, nullptr));
    }
  }
  if (!inband_) return explain_failure(object, role);
  parts.kind = ValueKind::kPickle;
  parts.inband = {reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(inband_.get())),
                  static_cast<size_t>(PyBytes_GET_SIZE(inband_.get()))};
  bytes_ = parts.inband.size();
  parts.contained = contained_;
  return !buffers || take_buffers(buffers.release());
}

bool Serialized::take_buffers(PyObject* list) {
  pickle_buffers_ = PyPtr(list);
  size_t count = PyList_GET_SIZE(list);
  buffers_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const Py_buffer* view = PyPickleBuffer_GetBuffer(PyList_GET_ITEM(list, i));
    if (!view) return false;
    if (!PyBuffer_IsContiguous(view, 'A')) {
      PyErr_SetString(PyExc_BufferError, "an out-of-band buffer is not contiguous");
      return false;
    }
    buffers_.push_back({static_cast<const uint8_t*>(view->buf), static_cast<size_t>(view->len)});
    bytes_ += static_cast<size_t>(view->len);
  }
  parts.buffers = buffers_;
  return true;
}

// Replaces the exception of unpickling by one that tells of the value, unless it is not about the
// value. Returns null.
static PyObject* raise_load_failure() {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  PyPtr kind(type), cause(error), frames(traceback);
  if (frames) PyException_SetTraceback(cause.get(), frames.get());
  PyPtr args(PyTuple_Pack(1, cause.get()));
  PyPtr failure = call_python("ray._private.errors", "load_failure", args.get());
  if (failure) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(failure.get())), failure.get());
  return nullptr;
}

PyObject* load_value(worker::Value& value) {
  switch (value.kind) {
    case ValueKind::kNone: Py_RETURN_NONE;
    case ValueKind::kRaw: return py_bytes(as_view(value.inband));
    case ValueKind::kPickle: {
      PyObject* loaded = load_pickle(value);
      return loaded ? loaded : raise_load_failure();
    }
    case ValueKind::kError: return raise_error_value(value.inband);
    case ValueKind::kMsgpack: return load_plain_value(value);
  }
  return raise(make_error(Code::kInternal, "a value of unknown kind"));
}

namespace {

PyObject* set_actor_handle_type(PyObject*, PyObject* type) {
  g_actor_handle = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}

// For tests and the definition of functions: (kind, in-band bytes, [buffers]) of a value.
PyObject* encode_for_test(PyObject*, PyObject* object) {
  Serialized value;
  if (!value.encode(object)) return nullptr;
  PyPtr buffers(PyList_New(0));
  for (Bytes b : value.parts.buffers) {
    PyPtr bytes(py_bytes(as_view(b)));
    if (!bytes || PyList_Append(buffers.get(), bytes.get()) < 0) return nullptr;
  }
  return Py_BuildValue("(iNO)", static_cast<int>(value.parts.kind),
                       py_bytes(as_view(value.parts.inband)), buffers.get());
}

PyObject* decode_for_test(PyObject*, PyObject* args) {
  int kind;
  const char* data;
  Py_ssize_t size;
  PyObject* buffers;
  if (!PyArg_ParseTuple(args, "iy#O!", &kind, &data, &size, &PyList_Type, &buffers)) return nullptr;
  worker::Value value;
  value.kind = static_cast<ValueKind>(kind);
  value.inband = as_bytes({data, static_cast<size_t>(size)});
  auto copies = std::make_shared<std::vector<std::string>>();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(buffers); ++i) {
    std::string bytes;
    if (!to_string(PyList_GET_ITEM(buffers, i), &bytes)) return nullptr;
    copies->push_back(std::move(bytes));
  }
  for (const std::string& copy : *copies) value.buffers.push_back(as_bytes(copy));
  value.keepalive = copies;
  return load_value(value);
}

// The exception of an encoded error value (a constructor's, inside an actor's death), or None.
PyObject* encoded_error(PyObject*, PyObject* bytes) {
  std::string encoded;
  if (!to_string(bytes, &encoded)) return nullptr;
  auto decoded = worker::decode_value(as_bytes(encoded));
  if (!decoded || decoded->kind != ValueKind::kError) Py_RETURN_NONE;
  raise_error_value(decoded->inband);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

PyMethodDef kSerializeFunctions[] = {
    {"encoded_error", encoded_error, METH_O, nullptr},
    {"_set_actor_handle_type", set_actor_handle_type, METH_O, nullptr},
    {"_encode", encode_for_test, METH_O, "(kind, in-band bytes, buffers) of an object."},
    {"_decode", decode_for_test, METH_VARARGS, "The object of (kind, in-band bytes, buffers)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_serialize(PyObject* module) {
  g_dumps = import_attribute("_pickle", "dumps").release();
  g_loads = import_attribute("_pickle", "loads").release();
  g_protocol = PyLong_FromLong(5);
  g_dumps_names = Py_BuildValue("(ss)", "protocol", "buffer_callback");
  g_loads_names = Py_BuildValue("(s)", "buffers");
  return g_dumps && g_loads && g_protocol && g_dumps_names && g_loads_names &&
         PyType_Ready(&ValueBufferType) == 0 &&
         PyModule_AddFunctions(module, kSerializeFunctions) == 0;
}

}  // namespace rt::python
