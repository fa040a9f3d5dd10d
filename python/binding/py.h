// C-API helpers that the whole binding shares.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

#include "python/binding/compat.h"

namespace rt::python {

// An owned Python reference. It may be used and destroyed only with the GIL held, except by a
// thread that CPython ends at interpreter exit: its stack is unwound without the GIL, and its
// references are left to the end of the process.
class PyPtr {
 public:
  PyPtr() = default;
  explicit PyPtr(PyObject* owned) : object_(owned) {}
  static PyPtr borrow(PyObject* object) { return PyPtr(Py_XNewRef(object)); }
  PyPtr(PyPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyPtr(const PyPtr&) = delete;
  PyPtr& operator=(PyPtr&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyPtr() {
    if (object_ && (!interpreter_ends() || PyGILState_Check())) Py_DECREF(object_);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  void reset() { Py_CLEAR(object_); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Releases the GIL for a scope, and GilAcquire takes it. At interpreter exit CPython ends threads
// that ask for the GIL by unwinding their stacks, so the destructors let that exception pass.
class GilRelease {
 public:
  explicit GilRelease(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() noexcept(false) {
    if (state_) PyEval_RestoreThread(state_);
  }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() noexcept(false) { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

inline PyObject* py_bytes(std::string_view s) {
  return PyBytes_FromStringAndSize(s.data(), s.size());
}
// Makes a str. Text from peers may hold anything, so bytes that are not UTF-8 are replaced and
// never an error.
inline PyObject* py_text(std::string_view s) {
  return PyUnicode_DecodeUTF8(s.data(), s.size(), "replace");
}
// The same for a path, of which Python keeps bytes that are no text, as os.fsdecode() does.
inline PyObject* py_path(std::string_view s) {
  return PyUnicode_DecodeFSDefaultAndSize(s.data(), s.size());
}
// Makes a list of str.
template <class Texts>
PyObject* py_texts(const Texts& texts, PyObject* make(std::string_view) = py_text) {
  PyPtr list(PyList_New(0));
  for (const auto& text : texts) {
    PyPtr item(make(text));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

// Reads the contents of bytes or str. False with a Python error for other types.
bool to_string(PyObject* object, std::string* out);

// module.name as a new reference, imported on first use; null with a Python error.
PyPtr import_attribute(const char* module, const char* name);
// Calls module.name(*args) and returns the result; null with a Python error, also when `args` is
// null.
PyPtr call_python(const char* module, const char* name, PyObject* args);

// Sets dict[key] = value and takes over the reference to `value`. False with a Python error, also
// when `value` is null.
bool set_item(PyObject* dict, const char* key, PyObject* value);

}  // namespace rt::python
