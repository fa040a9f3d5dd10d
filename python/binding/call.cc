#include "python/binding/call.h"

#include "python/binding/object_ref.h"
#include "python/binding/runtime.h"

namespace rt::python {

namespace {
constexpr const char* kArgumentRole = "the argument";  // As named in errors.
}

// Finds the references. Large arguments are put first and passed by reference, so that passing the
// same one again stores it once.
bool CallArgs::find_refs(worker::Worker& worker, PyObject* const* items, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = items[i];
    if (is_object_ref(item)) {
      if (!as_object_ref(item)->ref) {
        PyErr_SetString(
            PyExc_ValueError,
            "an ObjectRef made from bytes alone has no owner and cannot be an argument");
        return false;
      }
      positions_.push_back(i);
      refs_.push_back(&as_object_ref(item)->ref);
    } else if (is_large_argument(item)) {
      const uint64_t session = g_runtime.session;
      Serialized large;
      if (!large.encode(item, kArgumentRole) || !still_in(session)) return false;
      Result<worker::Ref> ref = Error{};
      {
        WithoutGil without_gil(large.is_large());
        ref = worker.put_once(large.parts);
      }
      if (!ref) return raise(ref.error()) != nullptr;
      made_.push_back(std::make_unique<worker::Ref>(std::move(*ref)));
      positions_.push_back(i);
      refs_.push_back(made_.back().get());
    }
  }
  return true;
}

bool CallArgs::encode_general(PyObject* const* items, size_t count, PyObject* keyword_names) {
  size_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  size_t positional = count - keywords, next = 0;
  PyPtr args(PyTuple_New(positional)), kwargs(keywords ? PyDict_New() : Py_NewRef(Py_None)),
      at(PyTuple_New(positions_.size()));
  if (!args || !kwargs || !at) return false;
  for (size_t i = 0; i < count; ++i) {
    PyObject* name = i >= positional ? PyTuple_GET_ITEM(keyword_names, i - positional) : nullptr;
    PyObject* item = items[i];
    if (next < positions_.size() && positions_[next] == i) {
      item = Py_None;
      PyTuple_SET_ITEM(at.get(), next++, name ? Py_NewRef(name) : PyLong_FromSize_t(i));
    }
    if (!name) {
      PyTuple_SET_ITEM(args.get(), i, Py_NewRef(item));
    } else if (PyDict_SetItem(kwargs.get(), name, item) < 0) {
      return false;
    }
  }
  if (!keywords && positions_.empty()) return value_.encode(args.get(), kArgumentRole);
  PyPtr call(Py_BuildValue("[OOO]", args.get(), kwargs.get(), at.get()));
  return call && value_.encode(call.get(), kArgumentRole);
}

bool CallArgs::build(worker::Worker& worker, PyObject* const* items, size_t count,
                     PyObject* keyword_names) {
  if (!find_refs(worker, items, count)) return false;
  if (count == 0) {
    value_.set_none();
  } else if (keyword_names ||
             !value_.encode_small_call(items, count, positions_.data(), positions_.size())) {
    if (!encode_general(items, count, keyword_names)) return false;
  }
  args_.push_back({.value = &value_.parts, .ref = nullptr});
  for (const worker::Ref* ref : refs_) args_.push_back({.value = nullptr, .ref = ref});
  return true;
}

bool CallArgs::build(worker::Worker& worker, PyObject* args, PyObject* kwargs) {
  if (!PyTuple_Check(args) || (kwargs && kwargs != Py_None && !PyDict_Check(kwargs))) {
    PyErr_SetString(PyExc_TypeError, "args must be a tuple, kwargs a dict");
    return false;
  }
  std::vector<PyObject*> items(PyTuple_GET_SIZE(args));
  for (size_t i = 0; i < items.size(); ++i) items[i] = PyTuple_GET_ITEM(args, i);
  PyPtr names;
  if (kwargs && kwargs != Py_None && PyDict_Size(kwargs) > 0) {
    PyPtr list(PyDict_Keys(kwargs));
    names = PyPtr(list ? PyList_AsTuple(list.get()) : nullptr);
    if (!names) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i)
      items.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(names.get(), i)));
  }
  return build(worker, items.data(), items.size(), names.get());
}

namespace {

// Puts the value of reference i where the caller had the reference.
bool place(PyObject* args, PyObject* kwargs, PyObject* at, PyObject* value) {
  PyPtr owned(value);
  if (PyUnicode_Check(at)) return PyDict_Check(kwargs) && PyDict_SetItem(kwargs, at, value) == 0;
  Py_ssize_t index = PyLong_AsSsize_t(at);
  if (index < 0 || index >= PyTuple_GET_SIZE(args)) {
    PyErr_SetString(PyExc_ValueError, "malformed arguments of a call");
    return false;
  }
  // This unpickling made the tuple and nobody else has seen it, so it may be changed.
  PyObject* old = PyTuple_GET_ITEM(args, index);
  PyTuple_SET_ITEM(args, index, owned.release());
  Py_XDECREF(old);
  return true;
}

bool load_positional(std::vector<worker::Value>& values, PyPtr* args) {
  *args = PyPtr(PyTuple_New(static_cast<Py_ssize_t>(values.size()) - 1));
  for (size_t i = 1; *args && i < values.size(); ++i) {
    PyObject* value = load_value(values[i]);
    if (!value) return false;
    PyTuple_SET_ITEM(args->get(), i - 1, value);
  }
  return static_cast<bool>(*args);
}

}  // namespace

bool load_call(std::vector<worker::Value>& values, PyPtr* args, PyPtr* kwargs) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i].kind == worker::ValueKind::kError) return load_value(values[i]) != nullptr;
  }
  if (values.empty() || values[0].kind == worker::ValueKind::kNone) {
    *args = PyPtr(PyTuple_New(0));
    return static_cast<bool>(*args);
  }
  if (values[0].kind == worker::ValueKind::kMsgpack) return load_positional(values, args);
  PyPtr call(load_value(values[0]));
  if (!call) return false;
  if (PyTuple_CheckExact(call.get())) {
    *args = std::move(call);
    return true;
  }
  if (!PyList_CheckExact(call.get()) || PyList_GET_SIZE(call.get()) != 3 ||
      !PyTuple_CheckExact(PyList_GET_ITEM(call.get(), 0)) ||
      !PyTuple_CheckExact(PyList_GET_ITEM(call.get(), 2)) ||
      PyTuple_GET_SIZE(PyList_GET_ITEM(call.get(), 2)) + 1 !=
          static_cast<Py_ssize_t>(values.size())) {
    PyErr_SetString(PyExc_ValueError, "malformed arguments of a call");
    return false;
  }
  *args = PyPtr::borrow(PyList_GET_ITEM(call.get(), 0));
  if (PyList_GET_ITEM(call.get(), 1) != Py_None)
    *kwargs = PyPtr::borrow(PyList_GET_ITEM(call.get(), 1));
  PyPtr at = PyPtr::borrow(PyList_GET_ITEM(call.get(), 2));
  call.reset();
  PyObject* keyword_target = *kwargs ? kwargs->get() : Py_None;
  for (size_t i = 1; i < values.size(); ++i) {
    PyObject* value = load_value(values[i]);
    if (!value || !place(args->get(), keyword_target, PyTuple_GET_ITEM(at.get(), i - 1), value))
      return false;
  }
  return true;
}

PyObject* refs_of_returns(std::vector<worker::Ref>& returns) {
  if (returns.size() == 1) return new_object_ref(std::move(returns[0]));
  if (returns.empty()) Py_RETURN_NONE;
  PyObject* list = PyList_New(returns.size());
  for (size_t i = 0; list && i < returns.size(); ++i) {
    PyObject* ref = new_object_ref(std::move(returns[i]));
    if (!ref) return Py_DECREF(list), nullptr;
    PyList_SET_ITEM(list, i, ref);
  }
  return list;
}

}  // namespace rt::python
