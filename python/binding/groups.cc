#include "python/binding/groups.h"

#include "python/binding/executor.h"
#include "python/binding/object_ref.h"
#include "python/binding/objects.h"
#include "python/binding/runtime.h"
#include "python/binding/specs.h"
#include "worker/placement_groups.h"

namespace rt::python {
namespace {

// False with a Python error.
bool read_group_id(PyObject* object, GroupId* id) {
  std::string bytes;
  if (!to_string(object, &bytes)) return false;
  if (!GroupId::is_valid(bytes))
    return PyErr_Format(PyExc_ValueError, "the id of a placement group has %zu bytes",
                        GroupId::kSize) != nullptr;
  *id = GroupId::from_binary(bytes);
  return true;
}

PyObject* create_group(PyObject*, PyObject* dict) {
  if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "expected a dict");
  proto::GroupSpec spec;
  worker::Worker* worker = connected();
  if (!worker || !group_from_dict(dict, &spec)) return nullptr;
  Result<GroupId> id = Error{};
  {
    WithoutGil without_gil;
    id = worker::create_group(*worker, std::move(spec));
  }
  return id ? py_bytes(id->view()) : raise(id.error());
}

PyObject* remove_group(PyObject*, PyObject* id_bytes) {
  GroupId id;
  worker::Worker* worker = connected();
  if (!worker || !read_group_id(id_bytes, &id)) return nullptr;
  Status removed;
  {
    WithoutGil without_gil;
    removed = worker::remove_group(*worker, id);
  }
  if (!removed) return raise(removed.error());
  Py_RETURN_NONE;
}

// wait_group(id, timeout in seconds or None) -> True: it is created; False: the time has passed;
// None: it has been removed or is not known.
PyObject* wait_group(PyObject*, PyObject* args) {
  PyObject *id_bytes, *timeout;
  GroupId id;
  int64_t deadline_us;
  if (!PyArg_ParseTuple(args, "OO", &id_bytes, &timeout) || !read_group_id(id_bytes, &id) ||
      !deadline_of(timeout, &deadline_us))
    return nullptr;
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  // ray.shutdown() may run in another thread while the GIL is free.
  WorkerHold hold = hold_worker();
  worker::Waited waited;
  if (!wait_with_signals([&] { return worker::wait_group(*worker, id, deadline_us); }, &waited))
    return nullptr;
  if (waited == worker::Waited::kFailed) Py_RETURN_NONE;
  return PyBool_FromLong(waited == worker::Waited::kDone);
}

// The dict of what `ask` finds; None when there is no such group.
template <class Ask>
PyObject* found_group(Ask ask) {
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  Result<proto::GroupInfo> info = Error{};
  {
    WithoutGil without_gil;
    info = ask(*worker);
  }
  if (!info && info.error().code == Code::kNotFound) Py_RETURN_NONE;
  return info ? group_info_to_dict(*info) : raise(info.error());
}

PyObject* group_info(PyObject*, PyObject* id_bytes) {
  GroupId id;
  if (!read_group_id(id_bytes, &id)) return nullptr;
  return found_group([&](worker::Worker& worker) { return worker::group_info(worker, id); });
}

PyObject* find_group(PyObject*, PyObject* args) {
  PyObject *name, *ray_namespace;
  std::string n, ns;
  if (!PyArg_ParseTuple(args, "OO", &name, &ray_namespace) || !to_string(name, &n) ||
      !to_string(ray_namespace, &ns))
    return nullptr;
  return found_group([&](worker::Worker& worker) { return worker::find_group(worker, n, ns); });
}

PyObject* list_groups(PyObject*, PyObject*) {
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  Result<std::vector<proto::GroupInfo>> groups = Error{};
  {
    WithoutGil without_gil;
    groups = worker::list_groups(*worker);
  }
  if (!groups) return raise(groups.error());
  PyPtr list(PyList_New(0));
  for (const auto& info : *groups) {
    PyPtr dict(group_info_to_dict(info));
    if (!list || !dict || PyList_Append(list.get(), dict.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* current_group(PyObject*, PyObject*) {
  if (!g_runtime.worker) return Py_BuildValue("(OiO)", Py_None, -1, Py_False);
  const worker::CurrentGroup current = worker::current_group(*g_runtime.worker);
  PyPtr id(current.id == GroupId::nil() ? Py_NewRef(Py_None) : py_bytes(current.id.view()));
  return id ? Py_BuildValue("(OiO)", id.get(), current.bundle_index,
                            current.captures_children ? Py_True : Py_False)
            : nullptr;
}

PyObject* removed_group_ref(PyObject*, PyObject*) {
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  proto::ErrorValue error;
  error.set_code(static_cast<int>(Code::kUnschedulable));
  error.mutable_exit()->set_kind(proto::ExitInfo::GROUP_REMOVED);
  const std::string encoded = error.SerializeAsString();
  auto ref = worker->put(error_parts(encoded));
  return ref ? new_object_ref(std::move(*ref)) : raise(ref.error());
}

PyMethodDef kGroupFunctions[] = {
    {"create_group", create_group, METH_O,
     "create_group({name, ray_namespace, strategy, bundles: [{resources, selector}], detached, "
     "ends_with_actor, soft_target_node_id, topology_strategy}) -> id. Waits only for a group that "
     "has a name."},
    {"remove_group", remove_group, METH_O, "remove_group(id)"},
    {"wait_group", wait_group, METH_VARARGS,
     "wait_group(id, timeout_s or None) -> True when it is created, False when the time has "
     "passed, None when it has been removed or is not known"},
    {"group_info", group_info, METH_O, "group_info(id) -> dict, or None when it is not known"},
    {"find_group", find_group, METH_VARARGS,
     "find_group(name, namespace or '') -> dict, or None when there is none"},
    {"list_groups", list_groups, METH_NOARGS, "list_groups() -> [dict], removed ones included"},
    {"current_group", current_group, METH_NOARGS,
     "current_group() -> (id or None, bundle index, whether it captures children) of the calling "
     "thread's task or of this process's actor"},
    {"removed_group_ref", removed_group_ref, METH_NOARGS,
     "removed_group_ref() -> ObjectRef whose value is the error TaskPlacementGroupRemoved"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_groups(PyObject* module) { return PyModule_AddFunctions(module, kGroupFunctions) == 0; }

}  // namespace rt::python
