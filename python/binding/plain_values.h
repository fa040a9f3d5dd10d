// Python objects <-> msgpack: the values that programs of every language understand. These are
// None, bool, int (64 bits), float, str, bytes, list, tuple (arrives as list), dict, and
// references anywhere inside (packed as their id, and counted beside the value).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/binding/py.h"
#include "python/binding/serialize.h"
#include "worker/worker.h"

namespace rt::python {

// One packed object. `parts` points into this object and is valid as long as it lives.
struct PlainValue {
  std::string bytes;
  std::vector<worker::Ref> contained;
  worker::ValueParts parts;

  PlainValue() = default;
  PlainValue(const PlainValue&) = delete;
  // False with a Python error: TypeError for other types, OverflowError for integers beyond 64
  // bits.
  bool encode(PyObject* object);
};

// The object of a kMsgpack value; null with a Python error.
PyObject* load_plain_value(const worker::Value& value);

// The arguments of a call to another language: each is a plain value or a reference, and there are
// no keywords.
class PlainCallArgs {
 public:
  bool build(worker::Worker& worker, PyObject* const* items, size_t count, PyObject* keyword_names);
  bool build(worker::Worker& worker, PyObject* args, PyObject* kwargs);
  std::span<const worker::Arg> args() const { return args_; }
  bool is_large() const { return bytes_ > kReleaseGilBytes; }

 private:
  std::vector<std::unique_ptr<PlainValue>> values_;
  std::vector<worker::Arg> args_;
  size_t bytes_ = 0;
};

// A result that is to be stored as a plain value, made by plain_value() of the module and
// recognised by Serialized::encode().
struct PlainResultObject {
  PyObject_HEAD PlainValue* value;
};
extern PyTypeObject PlainResultType;

bool add_plain_values(PyObject* module);

}  // namespace rt::python
