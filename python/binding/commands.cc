#include "python/binding/commands.h"

#include <fmt/core.h>

#include <memory>

#include "observability/command_service/commands.h"

namespace rt::python {
namespace {

// A Python function, which may be released in any thread, with or without the GIL.
class Function {
 public:
  explicit Function(PyObject* function) : function_(Py_NewRef(function)) {}
  Function(const Function&) = delete;
  // At interpreter exit the reference is left to the end of the process.
  ~Function() {
    if (interpreter_ends()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(function_);
    PyGILState_Release(state);
  }
  PyObject* get() const { return function_; }

 private:
  PyObject* function_;
};

std::string exception_text(PyObject* object) {
  PyPtr text(PyObject_Str(object));
  std::string out;
  if (!text || !to_string(text.get(), &out)) {
    PyErr_Clear();
    return "an exception without a text";
  }
  return out;
}

// Takes the exception that is set. Those that commands raise on purpose have texts for users; any
// other is a defect, so it goes to stderr with its traceback, and its type is named.
Error take_exception(const std::string& name, PyObject* function) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Error error = make_error(type == PyExc_ValueError ? Code::kInvalid : Code::kInternal,
                           exception_text(value));
  const bool on_purpose =
      type == PyExc_ValueError || type == PyExc_RuntimeError || type == PyExc_TimeoutError;
  if (!on_purpose)
    error.message = fmt::format("command {} failed: {}: {}", name,
                                reinterpret_cast<PyTypeObject*>(type)->tp_name, error.message);
  PyErr_Restore(type, value, traceback);
  if (on_purpose) {
    PyErr_Clear();
  } else {
    PyErr_WriteUnraisable(function);
  }
  return error;
}

Result<std::string> execute(const std::string& name, const Function& function,
                            const std::string& json) {
  GilAcquire gil;
  PyPtr argument(py_bytes(json));
  PyPtr answer(argument ? PyObject_CallFunctionObjArgs(function.get(), argument.get(), nullptr)
                        : nullptr);
  if (!answer) return take_exception(name, function.get());
  if (!PyBytes_Check(answer.get()))
    return make_error(Code::kInternal, fmt::format("command {} returned {} instead of bytes", name,
                                                   Py_TYPE(answer.get())->tp_name));
  return std::string(PyBytes_AS_STRING(answer.get()), PyBytes_GET_SIZE(answer.get()));
}

// set_command(name, function or None): offers function(json: bytes) -> json: bytes to those who
// operate the cluster. It runs in a thread of its own. A ValueError tells the caller that the
// request is wrong, and a RuntimeError or TimeoutError with its text what else prevents the answer.
PyObject* set_command(PyObject*, PyObject* args) {
  PyObject *name_object, *function;
  std::string name;
  if (!PyArg_ParseTuple(args, "UO", &name_object, &function) || !to_string(name_object, &name))
    return nullptr;
  if (function != Py_None && !PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "a command is a function or None, not %s",
                        Py_TYPE(function)->tp_name);
  std::shared_ptr<const command::Command> command;
  if (function != Py_None)
    command = std::make_shared<const command::Command>(
        [name, held = std::make_shared<const Function>(function)](const std::string& json) {
          return execute(name, *held, json);
        });
  process_commands().set(name, std::move(command));
  Py_RETURN_NONE;
}

PyMethodDef kCommandFunctions[] = {{"set_command", set_command, METH_VARARGS, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

}  // namespace

command::Commands& process_commands() {
  // Never destroyed, because a command may be under way while the interpreter ends.
  static auto* commands = new command::Commands;
  return *commands;
}

bool add_commands(PyObject* module) {
  return PyModule_AddFunctions(module, kCommandFunctions) == 0;
}

}  // namespace rt::python
