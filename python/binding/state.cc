#include "python/binding/state.h"

#include "common/base/clock.h"
#include "common/base/json_text.h"
#include "launch/node/launch.h"
#include "observability/state/logs.h"
#include "observability/state/memory_text.h"
#include "observability/state/query.h"
#include "python/binding/object_ref.h"
#include "python/binding/runtime.h"
#include "python/binding/specs.h"

namespace rt::python {
namespace {

// Chooses the token: a process has the token of its own cluster from its node-manager, and uses
// the user's for others.
Result<state::Cluster> cluster_at(const std::string& address, const WorkerHold& worker) {
  state::Cluster cluster{address, ""};
  if (worker) {
    const worker::Context context = worker->context();
    if (context.head_address == address) {
      cluster.token = context.token;
      return cluster;
    }
  }
  // Without a token the head may still accept the connection (RAY_AUTH_MODE=disabled); if not, its
  // error says what is missing.
  auto token = launch::auth_token(false);
  if (!token && token.error().code != Code::kNotFound) return token.error();
  if (token) cluster.token = *token;
  return cluster;
}

// The JSON text of what `ask` answers about the cluster at `address`. `ask` runs without the GIL.
template <class Ask>
PyObject* json_answer(const char* address, Ask ask) {
  Result<std::string> text = Error{};
  {
    WorkerHold worker = hold_worker();
    GilRelease release;
    text = [&]() -> Result<std::string> {
      RT_ASSIGN(auto cluster, cluster_at(address, worker));
      RT_ASSIGN(state::Answer answer, ask(cluster));
      return json_text(answer.json);
    }();
  }
  if (!text) return raise(text.error());
  return py_text(*text);
}

bool read_filters(PyObject* list, std::vector<state::Filter>* out) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *key, *value;
    int equal;
    state::Filter filter;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "UpU", &key, &equal, &value) ||
        !to_string(key, &filter.key) || !to_string(value, &filter.value))
      return false;
    filter.equal = equal;
    out->push_back(std::move(filter));
  }
  return true;
}

// state_query(head address, resource, summarise, [(key, equal, value)], limit, detail, by lineage,
// timeout_s) -> JSON text. Raises ValueError for a wrong query.
PyObject* state_query(PyObject*, PyObject* args) {
  const char *address, *resource;
  int summarise, detail, by_lineage;
  long long limit;
  double timeout;
  PyObject* filters;
  state::Query query;
  if (!PyArg_ParseTuple(args, "sspO!Lppd", &address, &resource, &summarise, &PyList_Type, &filters,
                        &limit, &detail, &by_lineage, &timeout) ||
      !read_filters(filters, &query.filters))
    return nullptr;
  query.resource = resource;
  query.limit = limit;
  query.detail = detail;
  query.by_lineage = by_lineage;
  query.timeout_us = static_cast<int64_t>(timeout * 1e6);
  return json_answer(address, [&](const state::Cluster& cluster) {
    return summarise ? state::summarize(cluster, query) : state::list(cluster, query);
  });
}

// nodes_of(head address, timeout_s) -> [node], as ray.nodes() returns them. Also works for a
// cluster that this process is not connected to.
PyObject* nodes_of(PyObject*, PyObject* args) {
  const char* address;
  double timeout;
  if (!PyArg_ParseTuple(args, "sd", &address, &timeout)) return nullptr;
  Result<std::vector<proto::Node>> nodes = Error{};
  {
    WorkerHold worker = hold_worker();
    GilRelease release;
    auto cluster = cluster_at(address, worker);
    nodes = cluster ? state::nodes(*cluster, static_cast<int64_t>(timeout * 1e6)) : cluster.error();
  }
  if (!nodes) return raise(nodes.error());
  PyPtr list(PyList_New(0));
  for (const auto& node : *nodes) {
    PyPtr dict(node_to_dict(node));
    if (!list || !dict || PyList_Append(list.get(), dict.get()) < 0) return nullptr;
  }
  return list.release();
}

// list_logs(head address, node id, node ip, glob, timeout_s) -> JSON text: {kind: [name]}
PyObject* list_logs(PyObject*, PyObject* args) {
  const char *address, *node_id, *node_ip, *glob;
  double timeout;
  if (!PyArg_ParseTuple(args, "ssssd", &address, &node_id, &node_ip, &glob, &timeout))
    return nullptr;
  return json_answer(address, [&](const state::Cluster& cluster) {
    return state::list_logs(cluster, node_id, node_ip, glob, static_cast<int64_t>(timeout * 1e6));
  });
}

// memory_text(head address, group_by, sort_by, units, stats_only, entries or -1) -> text. Raises
// ValueError for an unknown group, order or unit.
PyObject* memory_text(PyObject*, PyObject* args) {
  const char *address, *group_by, *sort_by, *units;
  int stats_only;
  long long entries;
  if (!PyArg_ParseTuple(args, "sssspL", &address, &group_by, &sort_by, &units, &stats_only,
                        &entries))
    return nullptr;
  state::MemoryQuery query{group_by, sort_by, units, stats_only != 0, entries};
  Result<std::string> text = Error{};
  {
    WorkerHold worker = hold_worker();
    GilRelease release;
    state::Json answer;
    auto cluster = cluster_at(address, worker);
    text = cluster ? state::memory_text(*cluster, query, &answer) : cluster.error();
  }
  return text ? py_text(*text) : raise(text.error());
}

// Raises LookupError, which is no ValueError, for a log that does not exist.
PyObject* raise_log_error(const Error& error) {
  if (error.code != Code::kNotFound) return raise(error);
  PyPtr message(py_text(error.message));
  if (message) PyErr_SetObject(PyExc_LookupError, message.get());
  return nullptr;
}

constexpr char kLogReading[] = "ray.LogReading";

void end_log(PyObject* capsule) {
  delete static_cast<state::LogReading*>(PyCapsule_GetPointer(capsule, kLogReading));
}

// open_log(head address, {node_id, node_ip, filename, actor_id, task_id, submission_id, suffix:
// text; pid, attempt, lines: int; follow, without_colours: bool}, timeout_s) -> the argument of
// log_piece(). Raises ValueError when the log is not named clearly, and LookupError when it does
// not exist.
PyObject* open_log(PyObject*, PyObject* args) {
  const char* address;
  PyObject* fields;
  double timeout;
  if (!PyArg_ParseTuple(args, "sO!d", &address, &PyDict_Type, &fields, &timeout)) return nullptr;
  state::LogQuery query;
  query.timeout_us = static_cast<int64_t>(timeout * 1e6);
  for (auto [name, text] : {std::pair{"node_id", &query.node_id},
                            {"node_ip", &query.node_ip},
                            {"filename", &query.filename},
                            {"actor_id", &query.actor_id},
                            {"task_id", &query.task_id},
                            {"submission_id", &query.submission_id},
                            {"suffix", &query.suffix}}) {
    if (PyObject* value = PyDict_GetItemString(fields, name); value && !to_string(value, text))
      return nullptr;
  }
  for (auto [name, number] :
       {std::pair{"pid", &query.pid}, {"attempt", &query.attempt}, {"lines", &query.lines}}) {
    if (PyObject* value = PyDict_GetItemString(fields, name)) *number = PyLong_AsLongLong(value);
  }
  for (auto [name, flag] :
       {std::pair{"follow", &query.follow}, {"without_colours", &query.without_colours}}) {
    if (PyObject* value = PyDict_GetItemString(fields, name)) *flag = PyObject_IsTrue(value) == 1;
  }
  if (PyErr_Occurred()) return nullptr;
  auto reading = std::make_unique<state::LogReading>();
  Status opened;
  {
    WorkerHold worker = hold_worker();
    GilRelease release;
    auto cluster = cluster_at(address, worker);
    opened = cluster ? reading->open(*cluster, query) : cluster.error();
  }
  if (!opened) return raise_log_error(opened.error());
  return PyCapsule_New(reading.release(), kLogReading, end_log);
}

// log_piece(result of open_log()) -> bytes. b"" means that there is no more; when following, no
// more for the moment.
PyObject* log_piece(PyObject*, PyObject* capsule) {
  auto* reading = static_cast<state::LogReading*>(PyCapsule_GetPointer(capsule, kLogReading));
  if (!reading) return nullptr;
  Result<std::string> piece = Error{};
  {
    GilRelease release;
    piece = reading->next();
  }
  if (!piece) return raise_log_error(piece.error());
  return PyBytes_FromStringAndSize(piece->data(), static_cast<Py_ssize_t>(piece->size()));
}

// store_stats(head address, timeout_s) -> JSON text: a list as state::store_stats() returns it.
PyObject* store_stats(PyObject*, PyObject* args) {
  const char* address;
  double timeout;
  if (!PyArg_ParseTuple(args, "sd", &address, &timeout)) return nullptr;
  return json_answer(address, [&](const state::Cluster& cluster) {
    std::vector<std::string> missing;
    return state::store_stats(cluster, static_cast<int64_t>(timeout * 1e6), &missing);
  });
}

// locate([ObjectRef], ask their owners, timeout_s or -1) -> [([node id], size in bytes or None)]
PyObject* locate(PyObject*, PyObject* args) {
  PyObject* list;
  int ask_owners;
  double timeout;
  if (!PyArg_ParseTuple(args, "O!pd", &PyList_Type, &list, &ask_owners, &timeout)) return nullptr;
  WorkerHold worker = hold_worker();
  if (!worker)
    return raise(make_error(Code::kUnavailable, "ray is not initialised: call ray.init() first"));
  std::vector<worker::Ref> refs;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!is_object_ref(item) || !as_object_ref(item)->ref)
      return PyErr_Format(PyExc_TypeError, "expected ObjectRefs of this session, got %R", item);
    refs.push_back(as_object_ref(item)->ref);
  }
  Result<std::vector<worker::Worker::Where>> found = Error{};
  {
    WithoutGil without_gil;
    found = worker->locate(
        refs, ask_owners, timeout < 0 ? -1 : steady_now_us() + static_cast<int64_t>(timeout * 1e6));
  }
  if (!found) return raise(found.error());
  PyPtr result(PyList_New(0));
  for (const auto& where : *found) {
    PyPtr nodes(PyList_New(0));
    for (const NodeId& node : where.nodes) {
      PyPtr hex(py_text(node.hex()));
      if (!nodes || !hex || PyList_Append(nodes.get(), hex.get()) < 0) return nullptr;
    }
    PyPtr entry(where.size < 0
                    ? Py_BuildValue("(OO)", nodes.get(), Py_None)
                    : Py_BuildValue("(OL)", nodes.get(), static_cast<long long>(where.size)));
    if (!result || !entry || PyList_Append(result.get(), entry.get()) < 0) return nullptr;
  }
  return result.release();
}

PyMethodDef kStateFunctions[] = {{"state_query", state_query, METH_VARARGS, nullptr},
                                 {"nodes_of", nodes_of, METH_VARARGS, nullptr},
                                 {"list_logs", list_logs, METH_VARARGS, nullptr},
                                 {"memory_text", memory_text, METH_VARARGS, nullptr},
                                 {"open_log", open_log, METH_VARARGS, nullptr},
                                 {"log_piece", log_piece, METH_O, nullptr},
                                 {"store_stats", store_stats, METH_VARARGS, nullptr},
                                 {"locate", locate, METH_VARARGS, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_state(PyObject* module) { return PyModule_AddFunctions(module, kStateFunctions) == 0; }

}  // namespace rt::python
