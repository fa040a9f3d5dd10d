// The arguments of one remote call, encoded. Argument 0 is a value with the Python arguments; the
// others are the references among them, in order. load_call() is the reverse. Argument 0 is one of
//
//   kNone                          no arguments
//   pickle of a tuple              positional arguments only
//   pickle of [args, kwargs, at]   `at[i]` is where reference i belongs, an index or a keyword;
//                                  None stands there in the pickle
//   kMsgpack                       the caller is of another language: the arguments after it are
//                                  the positional ones, whatever their kind
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>

#include "python/binding/py.h"
#include "python/binding/serialize.h"
#include "worker/worker.h"

namespace rt::python {

class CallArgs {
 public:
  // Encodes the arguments of a vectorcall. False with a Python error. The objects must outlive
  // this, which may point to their references.
  bool build(worker::Worker& worker, PyObject* const* items, size_t count, PyObject* keyword_names);
  // The same for a tuple and a dict (or null).
  bool build(worker::Worker& worker, PyObject* args, PyObject* kwargs);
  std::span<const worker::Arg> args() const { return {args_.data(), args_.size()}; }
  bool is_large() const { return value_.is_large(); }

 private:
  bool find_refs(worker::Worker& worker, PyObject* const* items, size_t count);
  bool encode_general(PyObject* const* items, size_t count, PyObject* keyword_names);

  Serialized value_;
  boost::container::small_vector<worker::Arg, 6> args_;
  boost::container::small_vector<uint32_t, 6> positions_;
  boost::container::small_vector<const worker::Ref*, 6> refs_;
  // Large arguments that became objects.
  std::vector<std::unique_ptr<worker::Ref>> made_;
};

// Makes the Python arguments of a task being executed (new references). False with a Python error,
// when an argument cannot be read or is an error itself.
bool load_call(std::vector<worker::Value>& values, PyPtr* args, PyPtr* kwargs);

// The result of a call in Python: one ObjectRef, a list of them, or None.
PyObject* refs_of_returns(std::vector<worker::Ref>& returns);

// Adds Template, FunctionBase, MethodBase and ActorCore.
bool add_calls(PyObject* module);

}  // namespace rt::python
