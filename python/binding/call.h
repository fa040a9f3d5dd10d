// The arguments of one remote call, encoded: argument 0 is a value with the Python arguments, the
// others are the references among them, in order. See load_call() for the reverse.
//
//   kNone                          no arguments
//   pickle of a tuple              positional arguments only
//   pickle of [args, kwargs, at]   `at[i]` is where reference i belongs: an index or a keyword;
//   None stands there meanwhile kMsgpack                       a caller of another language: the
//   arguments after it are the positional ones, whatever their kind
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>

#include "python/binding/py.h"
#include "python/binding/serialize.h"
#include "worker/worker.h"

namespace rt::python {

class CallArgs {
 public:
  // Vectorcall's arguments. False with a Python error.
  bool build(worker::Worker& worker, PyObject* const* items, size_t count, PyObject* keyword_names);
  // The same from a tuple and a dict (or null).
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
  std::vector<std::unique_ptr<worker::Ref>> made_;  // large arguments that became objects
};

// The Python arguments of a task being executed (new references). False with a Python error: an
// argument could not be read or is an error itself.
bool load_call(std::vector<worker::Value>& values, PyPtr* args, PyPtr* kwargs);

// The results of a call: one ObjectRef, a list of them, or None.
PyObject* refs_of_returns(std::vector<worker::Ref>& returns);

bool add_calls(PyObject* module);  // Template, FunctionBase, MethodBase, ActorCore

}  // namespace rt::python
