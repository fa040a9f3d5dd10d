// Starting and finding clusters, and calls to the head.
#include "python/binding/cluster.h"

#include <map>

#include "common/config/misspelt_variables.h"
#include "common/net/address.h"
#include "launch/node/launch.h"
#include "python/binding/objects.h"
#include "python/binding/runtime.h"
#include "python/binding/specs.h"
#include "worker/cluster.h"
#include "worker/drains.h"
#include "worker/find_node.h"
#include "worker/setup.h"

namespace rt::python {
namespace {

template <class Value>
bool read_optional(PyObject* dict, const char* key, std::optional<Value>* out) {
  PyObject* value = PyDict_GetItemString(dict, key);
  if (!value || value == Py_None) return true;
  double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred()) return false;
  *out = static_cast<Value>(number);
  return true;
}

template <class Value, class Convert>
bool read_map(PyObject* dict, const char* key, std::map<std::string, Value>* out, Convert convert) {
  PyObject* map = PyDict_GetItemString(dict, key);
  if (!map || map == Py_None) return true;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(map, &at, &name, &value)) {
    std::string text;
    if (!to_string(name, &text) || !convert(value, &(*out)[text])) return false;
  }
  return true;
}

bool read_options(PyObject* dict, launch::NodeOptions* out) {
  auto text = [](PyObject* value, std::string* to) { return to_string(value, to); };
  auto number = [](PyObject* value, double* to) {
    return (*to = PyFloat_AsDouble(value)) != -1.0 || !PyErr_Occurred();
  };
  return read(dict, "head", &out->head) && read(dict, "port", &out->port) &&
         read(dict, "node_ip", &out->node_ip) && read(dict, "address", &out->address) &&
         read(dict, "node_name", &out->node_name) && read(dict, "temp_dir", &out->temp_dir) &&
         read(dict, "plasma_directory", &out->plasma_directory) &&
         read(dict, "python_executable", &out->python_executable) &&
         read(dict, "private_to_parent", &out->private_to_parent) &&
         read(dict, "include_dashboard", &out->dashboard.include) &&
         read(dict, "dashboard_host", &out->dashboard.host) &&
         read_optional(dict, "dashboard_port", &out->dashboard.port) &&
         read(dict, "metrics_export_port", &out->metrics_export_port) &&
         read_optional(dict, "num_cpus", &out->resources.num_cpus) &&
         read_optional(dict, "num_gpus", &out->resources.num_gpus) &&
         read_optional(dict, "memory", &out->resources.memory) &&
         read_optional(dict, "object_store_memory", &out->resources.object_store_memory) &&
         read_map(dict, "resources", &out->resources.custom, number) &&
         read_map(dict, "labels", &out->labels, text) &&
         read_map(dict, "system_config", &out->system_config, text);
}

PyObject* started_to_dict(const launch::StartedNode& node) {
  PyPtr dict(PyDict_New()), processes(PyList_New(0));
  if (!dict || !processes) return nullptr;
  for (const auto& process : node.processes) {
    PyPtr item(Py_BuildValue("(siK)", process.name.c_str(), process.pid,
                             static_cast<unsigned long long>(process.start_time)));
    if (!item || PyList_Append(processes.get(), item.get()) < 0) return nullptr;
  }
  PyObject* d = dict.get();
  set_item(d, "session_dir", py_text(node.session_dir));
  set_item(d, "session_name", py_text(node.session_name));
  set_item(d, "head_address", py_text(node.head_address));
  set_item(d, "node_ip", py_text(node.node_ip));
  set_item(d, "node_manager_port", PyLong_FromLong(node.node_manager_port));
  set_item(d, "metrics_export_port", PyLong_FromLong(node.metrics_export_port));
  set_item(d, "node_manager_socket", py_text(node.node_manager_socket));
  set_item(d, "object_store_socket", py_text(node.object_store_socket));
  set_item(d, "node_id", py_text(node.node_id_hex));
  set_item(d, "lifeline_fd", PyLong_FromLong(node.lifeline_fd));
  set_item(d, "processes", processes.release());
  return PyErr_Occurred() ? nullptr : dict.release();
}

void warn_once(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) {
    PyPtr args(Py_BuildValue("(N)", py_text(sentence)));
    if (!call_python("ray._private.local_cluster", "warn_once", args.get())) PyErr_Print();
  }
}

PyObject* start_node(PyObject*, PyObject* dict) {
  launch::NodeOptions options;
  if (!PyDict_Check(dict) || !read_options(dict, &options)) return nullptr;
  Result<launch::StartedNode> node = Error{};
  {
    GilRelease release;
    node = launch::start_node(options, "_system_config");
  }
  if (!node) return raise(node.error());
  warn_once(node->warnings);
  return started_to_dict(*node);
}

// stop_processes([(name, pid, start time)], grace in seconds) -> (found, killed)
PyObject* stop_processes(PyObject*, PyObject* args) {
  PyObject* list;
  double grace;
  if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &list, &grace)) return nullptr;
  std::vector<launch::StartedProcess> processes;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const char* name;
    int pid;
    unsigned long long start;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "siK", &name, &pid, &start)) return nullptr;
    processes.push_back({name, pid, start});
  }
  launch::StopResult result;
  {
    GilRelease release;
    result = launch::stop_processes(processes, static_cast<int64_t>(grace * 1e6));
  }
  return Py_BuildValue("(ii)", result.found, result.killed);
}

// find_node(head address, timeout in seconds) -> (node-manager socket, node dict)
PyObject* find_node(PyObject*, PyObject* args) {
  const char* address;
  double timeout;
  if (!PyArg_ParseTuple(args, "sd", &address, &timeout)) return nullptr;
  Result<proto::Node> node = Error{};
  {
    GilRelease release;
    auto token = launch::auth_token(false);
    node = token ? worker::find_local_node(address, *token, static_cast<int64_t>(timeout * 1e6))
                 : token.error();
  }
  if (!node) return raise(node.error());
  warn_once(misspelt_variables());
  return Py_BuildValue("(sN)", node->node_manager_socket().c_str(), node_to_dict(*node));
}

PyObject* resolve_address(PyObject*, PyObject* option) {
  std::string text;
  if (!to_string(option, &text)) return nullptr;
  auto address = launch::resolve_address(text);
  if (!address) return raise(address.error());
  return py_text(*address);
}

PyObject* running_cluster(PyObject*, PyObject* root) {
  std::string text;
  if (!to_string(root, &text)) return nullptr;
  Result<std::string> address = Error{};
  {
    GilRelease release;
    address = launch::running_cluster(text);
  }
  if (!address) return raise(address.error());
  return py_text(*address);
}

PyObject* detect_node_ip(PyObject*, PyObject* peer) {
  std::string host;
  if (!to_string(peer, &host)) return nullptr;
  {
    GilRelease release;
    host = net::detect_node_ip(host);
  }
  return py_text(host);
}

PyObject* auth_token(PyObject*, PyObject* create) {
  auto token = launch::auth_token(PyObject_IsTrue(create));
  if (!token) return raise(token.error());
  return py_text(*token);
}

// Runs a blocking call of the worker without the GIL, and converts its result or raises its error.
template <class Call, class Convert>
PyObject* ask(Call call, Convert convert) {
  WorkerHold worker = hold_worker();
  if (!worker)
    return raise(make_error(Code::kUnavailable, "ray is not initialised: call ray.init() first"));
  PyThreadState* state = PyEval_SaveThread();
  auto result = call(*worker);
  PyEval_RestoreThread(state);
  if (!result) return raise(result.error());
  return convert(*result);
}

PyObject* nodes(PyObject*, PyObject*) {
  return ask([](worker::Worker& w) { return worker::cluster_nodes(w); },
             [](const std::vector<proto::Node>& nodes) -> PyObject* {
               PyPtr list(PyList_New(0));
               for (const auto& node : nodes) {
                 PyPtr dict(node_to_dict(node));
                 if (!dict || PyList_Append(list.get(), dict.get()) < 0) return nullptr;
               }
               return list.release();
             });
}

// wait_for_drains({node id as hex: deadline in ms}, timeout in seconds or None) -> {node id as hex:
// (is it a preemption, message, deadline in ms)}; None: the time has passed, or Ray is shut down.
PyObject* wait_for_drains(PyObject*, PyObject* args) {
  PyObject *known, *timeout;
  int64_t deadline_us;
  if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &known, &timeout) ||
      !deadline_of(timeout, &deadline_us))
    return nullptr;
  std::map<NodeId, proto::NodeDrain> drains;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(known, &at, &name, &value);) {
    std::string hex;
    const int64_t deadline_ms = PyLong_AsLongLong(value);
    if (!to_string(name, &hex) || (deadline_ms == -1 && PyErr_Occurred())) return nullptr;
    drains[NodeId::from_hex(hex)].set_deadline_ms(deadline_ms);
  }
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  // ray.shutdown() may run in another thread while the GIL is free.
  WorkerHold hold = hold_worker();
  worker::Waited waited;
  if (!wait_with_signals([&] { return worker::wait_for_drains(*worker, &drains, deadline_us); },
                         &waited))
    return nullptr;
  if (waited != worker::Waited::kDone) Py_RETURN_NONE;
  PyPtr found(PyDict_New());
  for (const auto& [id, drain] : drains) {
    PyPtr what(
        Py_BuildValue("(ONL)", drain.reason() == proto::DRAINED_FOR_PREEMPTION ? Py_True : Py_False,
                      py_text(drain.message()), static_cast<long long>(drain.deadline_ms())));
    if (!found || !what || PyDict_SetItemString(found.get(), id.hex().c_str(), what.get()) < 0)
      return nullptr;
  }
  return found.release();
}

PyObject* resources(PyObject*, PyObject* available) {
  bool free = PyObject_IsTrue(available);
  return ask([](worker::Worker& w) { return worker::cluster_nodes(w); },
             [free](const std::vector<proto::Node>& nodes) {
               return summed_resources_to_dict(nodes, free);
             });
}

PyObject* list_actors(PyObject*, PyObject* all) {
  bool all_namespaces = PyObject_IsTrue(all);
  return ask([&](worker::Worker& w) { return worker::list_actors(w, all_namespaces); },
             [](const std::vector<proto::ActorInfo>& actors) -> PyObject* {
               PyPtr list(PyList_New(0));
               for (const auto& actor : actors) {
                 PyPtr dict(actor_info_to_dict(actor));
                 if (!dict || PyList_Append(list.get(), dict.get()) < 0) return nullptr;
               }
               return list.release();
             });
}

PyObject* timeline(PyObject*, PyObject*) {
  return ask([](worker::Worker& w) { return worker::timeline_json(w); },
             [](const auto& trace) {
               return Py_BuildValue("(NL)", py_text(trace.first),
                                    static_cast<long long>(trace.second));
             });
}

bool two_strings(PyObject* args, std::string* a, std::string* b) {
  PyObject *first, *second;
  return PyArg_ParseTuple(args, "OO", &first, &second) && to_string(first, a) &&
         to_string(second, b);
}

PyObject* kv_put(PyObject*, PyObject* args) {
  PyObject *ns, *key, *value;
  int overwrite, outlives_job = 0;
  std::string n, k, v;
  if (!PyArg_ParseTuple(args, "OOOp|p", &ns, &key, &value, &overwrite, &outlives_job) ||
      !to_string(ns, &n) || !to_string(key, &k) || !to_string(value, &v))
    return nullptr;
  return ask([&](worker::Worker& w) { return worker::kv_put(w, n, k, v, overwrite, outlives_job); },
             [](bool added) { return PyBool_FromLong(added); });
}

PyObject* kv_get(PyObject*, PyObject* args) {
  std::string ns, key;
  if (!two_strings(args, &ns, &key)) return nullptr;
  return ask(
      [&](worker::Worker& w) -> Result<std::optional<std::string>> {
        auto value = worker::kv_get(w, ns, key);
        if (value) return std::optional<std::string>(std::move(*value));
        if (value.error().code == Code::kNotFound) return std::optional<std::string>();
        return value.error();
      },
      [](const std::optional<std::string>& value) {
        return value ? py_bytes(*value) : Py_NewRef(Py_None);
      });
}

// fetch_value(head address, token, namespace, key) -> bytes. For a process that is not connected.
PyObject* fetch_value(PyObject*, PyObject* args) {
  const char *head, *token, *ns, *key;
  if (!PyArg_ParseTuple(args, "ssss", &head, &token, &ns, &key)) return nullptr;
  Result<std::string> value = Error{};
  {
    GilRelease release;
    value = worker::fetch_value(head, token, ns, key);
  }
  return value ? py_bytes(*value) : raise(value.error());
}

// report_setup_failure(node-manager socket, worker id, message)
PyObject* report_setup_failure(PyObject*, PyObject* args) {
  const char* socket;
  PyObject *id, *message;
  std::string worker, text;
  if (!PyArg_ParseTuple(args, "sOO", &socket, &id, &message) || !to_string(id, &worker) ||
      !to_string(message, &text))
    return nullptr;
  Status told = worker::report_setup_failure(socket, WorkerId::from_binary(worker), text);
  if (!told) return raise(told.error());
  Py_RETURN_NONE;
}

PyObject* kv_delete(PyObject*, PyObject* args) {
  std::string ns, key;
  if (!two_strings(args, &ns, &key)) return nullptr;
  return ask([&](worker::Worker& w) { return worker::kv_delete(w, ns, key); },
             [](bool deleted) { return PyBool_FromLong(deleted); });
}

PyObject* kv_list(PyObject*, PyObject* args) {
  std::string ns, prefix;
  if (!two_strings(args, &ns, &prefix)) return nullptr;
  return ask([&](worker::Worker& w) { return worker::kv_list(w, ns, prefix); },
             [](const std::vector<std::string>& keys) -> PyObject* {
               PyPtr list(PyList_New(0));
               for (const auto& key : keys) {
                 PyPtr bytes(py_bytes(key));
                 if (!bytes || PyList_Append(list.get(), bytes.get()) < 0) return nullptr;
               }
               return list.release();
             });
}

PyMethodDef kClusterFunctions[] = {
    {"start_node", start_node, METH_O, "Starts the daemons of a node; returns what runs where."},
    {"stop_processes", stop_processes, METH_VARARGS, nullptr},
    {"find_node", find_node, METH_VARARGS,
     "find_node(head address, timeout_s) -> (node-manager socket, node)"},
    {"resolve_address", resolve_address, METH_O, nullptr},
    {"running_cluster", running_cluster, METH_O, "running_cluster(temporary root) -> HOST:PORT"},
    {"detect_node_ip", detect_node_ip, METH_O,
     "detect_node_ip(peer) -> the address of this machine for `peer`, a host or ''"},
    {"auth_token", auth_token, METH_O, nullptr},
    {"nodes", nodes, METH_NOARGS, nullptr},
    {"wait_for_drains", wait_for_drains, METH_VARARGS,
     "wait_for_drains({node id: deadline_ms}, timeout_s or None) -> {node id: (is it a preemption, "
     "message, deadline_ms)} once the nodes that drain are others, or None"},
    {"resources", resources, METH_O, "resources(available) -> amounts summed over alive nodes"},
    {"list_actors", list_actors, METH_O, nullptr},
    {"timeline", timeline, METH_NOARGS,
     "timeline() -> (the Chrome trace as JSON text, events that were dropped)"},
    {"kv_put", kv_put, METH_VARARGS,
     "kv_put(namespace, key, value, overwrite, outlives_job=False) -> added"},
    {"kv_get", kv_get, METH_VARARGS, "kv_get(namespace, key) -> bytes or None"},
    {"fetch_value", fetch_value, METH_VARARGS,
     "fetch_value(head address, token, namespace, key) -> bytes, before this process is connected"},
    {"report_setup_failure", report_setup_failure, METH_VARARGS,
     "report_setup_failure(node-manager socket, worker id, message)"},
    {"kv_delete", kv_delete, METH_VARARGS, nullptr},
    {"kv_list", kv_list, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_cluster(PyObject* module) { return PyModule_AddFunctions(module, kClusterFunctions) == 0; }

}  // namespace rt::python
