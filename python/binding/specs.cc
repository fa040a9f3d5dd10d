#include "python/binding/specs.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/base/ids.h"
#include "common/resources/resource_set.h"
#include "observability/api_json/node_json.h"

namespace rt::python {
namespace {

// Borrowed dict[key]; null when absent or None.
PyObject* item(PyObject* dict, const char* key) {
  PyObject* value = PyDict_GetItemString(dict, key);
  return value == Py_None ? nullptr : value;
}

// Calls set(std::string / int64 / bool) with dict[key] when it is there. False with a Python
// error.
template <class T, class Set>
bool field(PyObject* dict, const char* key, Set set) {
  if (!item(dict, key)) return true;
  T value{};
  if (!read(dict, key, &value)) return false;
  set(std::move(value));
  return true;
}

template <class Each>
bool each_item(PyObject* dict, const char* key, Each each) {
  PyObject* map = item(dict, key);
  if (!map) return true;
  if (!PyDict_Check(map))
    return PyErr_Format(PyExc_TypeError, "%s: expected a dict", key) != nullptr;
  PyObject *name, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(map, &at, &name, &value)) {
    std::string text;
    if (!to_string(name, &text) || !each(text, value)) return false;
  }
  return true;
}

// Amounts become units of 1/10000. Their validity was checked in Python (ray/_private/options.py).
bool resources(PyObject* dict, const char* key, proto::Resources* out) {
  return each_item(dict, key, [&](const std::string& name, PyObject* value) {
    double amount = PyFloat_AsDouble(value);
    if (amount == -1.0 && PyErr_Occurred()) return false;
    auto checked = ResourceSet::from_map({{name, amount}});
    if (!checked) {
      PyErr_SetString(PyExc_ValueError, checked.error().message.c_str());
      return false;
    }
    if (int64_t units = checked->units(name)) (*out->mutable_units())[name] = units;
    return true;
  });
}

bool strings(PyObject* dict, const char* key,
             google::protobuf::Map<std::string, std::string>* out) {
  return each_item(dict, key, [&](const std::string& name, PyObject* value) {
    return to_string(value, &(*out)[name]);
  });
}

bool numbers(PyObject* dict, const char* key, google::protobuf::Map<std::string, int32_t>* out) {
  return each_item(dict, key, [&](const std::string& name, PyObject* value) {
    long number = PyLong_AsLong(value);
    if (number == -1 && PyErr_Occurred()) return false;
    (*out)[name] = static_cast<int32_t>(number);
    return true;
  });
}

bool list(PyObject* dict, const char* key, google::protobuf::RepeatedPtrField<std::string>* out) {
  PyObject* values = item(dict, key);
  if (!values) return true;
  PyPtr sequence(PySequence_Fast(values, key));
  if (!sequence) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    if (!to_string(PySequence_Fast_GET_ITEM(sequence.get(), i), out->Add())) return false;
  }
  return true;
}

// Converts what api_json makes: objects of texts, numbers, booleans and objects.
PyObject* json_to_py(const api_json::Json& json) {
  if (json.is_string()) return py_text(json.get_ref<const std::string&>());
  if (json.is_boolean()) return PyBool_FromLong(json.get<bool>());
  if (json.is_number_float()) return PyFloat_FromDouble(json.get<double>());
  if (json.is_number()) return PyLong_FromLongLong(json.get<int64_t>());
  if (!json.is_object())
    return PyErr_Format(PyExc_SystemError, "no Python value for JSON %s", json.type_name());
  PyPtr dict(PyDict_New());
  for (const auto& [key, value] : json.items()) {
    if (!dict || !set_item(dict.get(), key.c_str(), json_to_py(value))) return nullptr;
  }
  return dict.release();
}

// Reads a list of (label, operator as in LabelRule.Op, values).
bool selector(PyObject* rules, proto::LabelSelector* out) {
  PyPtr sequence(PySequence_Fast(rules, "label rules"));
  for (Py_ssize_t i = 0; sequence && i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    const char* key;
    int op;
    PyObject* values;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(sequence.get(), i), "siO!", &key, &op,
                          &PyList_Type, &values))
      return false;
    proto::LabelRule* rule = out->add_rules();
    rule->set_key(key);
    rule->set_op(static_cast<proto::LabelRule::Op>(op));
    for (Py_ssize_t v = 0; v < PyList_GET_SIZE(values); ++v) {
      if (!to_string(PyList_GET_ITEM(values, v), rule->add_values())) return false;
    }
  }
  return static_cast<bool>(sequence);
}

bool constraint(PyObject* dict, proto::TaskTemplate* spec) {
  PyObject* fields = item(dict, "constraint");
  if (!fields) return true;
  proto::NodeConstraint& out = *spec->mutable_constraint();
  PyObject *hard = item(fields, "hard"), *preferred = item(fields, "preferred"),
           *fallbacks = item(fields, "fallbacks");
  for (Py_ssize_t i = 0; fallbacks && i < PyList_GET_SIZE(fallbacks); ++i) {
    if (!selector(PyList_GET_ITEM(fallbacks, i), out.add_fallbacks())) return false;
  }
  return field<std::string>(fields, "node_id",
                            [&](std::string v) { out.set_node_id(std::move(v)); }) &&
         field<bool>(fields, "soft", [&](bool v) { out.set_soft(v); }) &&
         field<bool>(fields, "spill_on_unavailable",
                     [&](bool v) { out.set_spill_on_unavailable(v); }) &&
         field<bool>(fields, "fail_on_unavailable",
                     [&](bool v) { out.set_fail_on_unavailable(v); }) &&
         (!hard || selector(hard, out.mutable_hard())) &&
         (!preferred || selector(preferred, out.mutable_preferred()));
}

// Sets the fields of `out` that are texts, numbers or booleans, each from the key of its name.
bool plain_fields(PyObject* dict, google::protobuf::Message* out) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *out->GetReflection();
  bool ok = true;
  for (int i = 0; ok && i < out->GetDescriptor()->field_count(); ++i) {
    const Field* f = out->GetDescriptor()->field(i);
    const char* key = f->name().c_str();
    if (f->is_repeated()) continue;
    switch (f->cpp_type()) {
      case Field::CPPTYPE_STRING:
        ok = field<std::string>(dict, key,
                                [&](std::string v) { reflection.SetString(out, f, std::move(v)); });
        break;
      case Field::CPPTYPE_INT32:
        ok = field<int32_t>(dict, key, [&](int32_t v) { reflection.SetInt32(out, f, v); });
        break;
      case Field::CPPTYPE_INT64:
        ok = field<int64_t>(dict, key, [&](int64_t v) { reflection.SetInt64(out, f, v); });
        break;
      case Field::CPPTYPE_BOOL:
        ok = field<bool>(dict, key, [&](bool v) { reflection.SetBool(out, f, v); });
        break;
      default: break;  // messages and enumerations, which Python writes in another form
    }
  }
  return ok;
}

// Reads a list of dicts: `resources` and, when the node must match labels, `selector`.
bool bundles(PyObject* dict, proto::GroupSpec* out) {
  PyObject* given = item(dict, "bundles");
  PyPtr sequence(given ? PySequence_Fast(given, "bundles") : nullptr);
  for (Py_ssize_t i = 0; sequence && i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    PyObject* fields = PySequence_Fast_GET_ITEM(sequence.get(), i);
    proto::BundleSpec* bundle = out->add_bundles();
    PyObject* rules = PyDict_Check(fields) ? item(fields, "selector") : nullptr;
    if (!resources(fields, "resources", bundle->mutable_resources()) ||
        (rules && !selector(rules, bundle->mutable_selector())))
      return false;
  }
  return static_cast<bool>(sequence);
}

bool function_from_dict(PyObject* dict, proto::FunctionDescriptor* out) {
  return field<int32_t>(dict, "language",
                        [&](int32_t v) { out->set_language(static_cast<proto::Language>(v)); }) &&
         field<std::string>(dict, "module",
                            [&](std::string v) { out->set_module(std::move(v)); }) &&
         field<std::string>(dict, "function_name",
                            [&](std::string v) { out->set_name(std::move(v)); }) &&
         field<std::string>(dict, "key", [&](std::string v) { out->set_key(std::move(v)); }) &&
         field<std::string>(dict, "blob", [&](std::string v) { out->set_blob(std::move(v)); }) &&
         field<std::string>(dict, "class_name",
                            [&](std::string v) { out->set_class_name(std::move(v)); });
}

}  // namespace

bool read(PyObject* dict, const char* key, std::string* out) {
  PyObject* value = item(dict, key);
  return !value || to_string(value, out);
}

bool read(PyObject* dict, const char* key, int64_t* out) {
  PyObject* value = item(dict, key);
  if (!value) return true;
  int64_t number = PyLong_AsLongLong(value);
  if (number == -1 && PyErr_Occurred()) return false;
  *out = number;
  return true;
}

bool read(PyObject* dict, const char* key, int32_t* out) {
  int64_t number = *out;
  if (!read(dict, key, &number)) return false;
  if (number < INT32_MIN || number > INT32_MAX)
    return PyErr_Format(PyExc_OverflowError, "%s is too large", key) != nullptr;
  *out = static_cast<int32_t>(number);
  return true;
}

bool read(PyObject* dict, const char* key, bool* out) {
  PyObject* value = item(dict, key);
  if (!value) return true;
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return false;
  *out = truth;
  return true;
}

bool template_from_dict(PyObject* dict, proto::TaskTemplate* out) {
  out->set_num_returns(1);
  return function_from_dict(dict, out->mutable_function()) && plain_fields(dict, out) &&
         resources(dict, "resources", out->mutable_resources()) && constraint(dict, out) &&
         field<std::string>(dict, "scheduling_strategy", [&](const std::string& name) {
           proto::SchedulingStrategy strategy = proto::DEFAULT;
           proto::SchedulingStrategy_Parse(name, &strategy);
           out->set_strategy(strategy);
         });
}

bool actor_from_dict(PyObject* dict, proto::ActorSpec* out) {
  PyObject* creation = item(dict, "creation");
  return creation && template_from_dict(creation, out->mutable_creation()) &&
         field<std::string>(dict, "name", [&](std::string v) { out->set_name(std::move(v)); }) &&
         field<std::string>(dict, "ray_namespace",
                            [&](std::string v) { out->set_ray_namespace(std::move(v)); }) &&
         field<bool>(dict, "detached", [&](bool v) { out->set_detached(v); }) &&
         field<int64_t>(dict, "max_restarts", [&](int64_t v) { out->set_max_restarts(v); }) &&
         field<int64_t>(dict, "max_task_retries",
                        [&](int64_t v) { out->set_max_task_retries(v); }) &&
         field<int32_t>(dict, "max_concurrency", [&](int32_t v) { out->set_max_concurrency(v); }) &&
         numbers(dict, "concurrency_groups", out->mutable_concurrency_groups()) &&
         field<bool>(dict, "asyncio", [&](bool v) { out->set_asyncio(v); }) &&
         field<bool>(dict, "out_of_order", [&](bool v) { out->set_out_of_order(v); }) &&
         field<std::string>(dict, "handle_blob",
                            [&](std::string v) { out->set_handle_blob(std::move(v)); }) &&
         resources(dict, "placement", out->mutable_placement()) &&
         field<std::string>(dict, "class_name",
                            [&](std::string v) { out->set_class_name(std::move(v)); }) &&
         field<int32_t>(dict, "max_pending_calls",
                        [&](int32_t v) { out->set_max_pending_calls(v); });
}

bool group_from_dict(PyObject* dict, proto::GroupSpec* out) {
  return bundles(dict, out) &&
         field<std::string>(dict, "name", [&](std::string v) { out->set_name(std::move(v)); }) &&
         field<std::string>(dict, "ray_namespace",
                            [&](std::string v) { out->set_ray_namespace(std::move(v)); }) &&
         field<int32_t>(
             dict, "strategy",
             [&](int32_t v) { out->set_strategy(static_cast<proto::GroupSpec::Strategy>(v)); }) &&
         field<bool>(dict, "detached", [&](bool v) { out->set_detached(v); }) &&
         field<bool>(dict, "ends_with_actor", [&](bool v) { out->set_outlives_job(v); }) &&
         field<std::string>(dict, "soft_target_node_id",
                            [&](std::string v) { out->set_soft_target_node_id(std::move(v)); }) &&
         strings(dict, "topology_strategy", out->mutable_topology_strategy());
}

bool job_config_from_dict(PyObject* dict, proto::JobConfig* out) {
  return field<std::string>(dict, "ray_namespace",
                            [&](std::string v) { out->set_ray_namespace(std::move(v)); }) &&
         field<std::string>(dict, "python_executable",
                            [&](std::string v) { out->set_python_executable(std::move(v)); }) &&
         list(dict, "sys_path", out->mutable_sys_path()) &&
         list(dict, "code_search_path", out->mutable_code_search_path()) &&
         field<std::string>(dict, "cwd", [&](std::string v) { out->set_cwd(std::move(v)); }) &&
         field<std::string>(dict, "entrypoint",
                            [&](std::string v) { out->set_entrypoint(std::move(v)); }) &&
         field<std::string>(dict, "runtime_env",
                            [&](std::string v) { out->set_runtime_env(std::move(v)); }) &&
         strings(dict, "metadata", out->mutable_metadata()) &&
         strings(dict, "env", out->mutable_env()) &&
         field<bool>(dict, "log_to_driver", [&](bool v) { out->set_log_to_driver(v); }) &&
         field<std::string>(dict, "submission_id",
                            [&](std::string v) { out->set_submission_id(std::move(v)); });
}

PyObject* scheduling_strategies(PyObject*, PyObject*) {
  const auto& strategies = *proto::SchedulingStrategy_descriptor();
  PyPtr names(PyTuple_New(strategies.value_count()));
  for (int i = 0; names && i < strategies.value_count(); ++i) {
    PyObject* name = py_text(strategies.value(i)->name());
    if (!name) return nullptr;
    PyTuple_SET_ITEM(names.get(), i, name);
  }
  return names.release();
}

PyObject* resources_to_dict(const proto::Resources& resources) {
  PyPtr dict(PyDict_New());
  for (const auto& [name, units] : resources.units()) {
    if (!dict || !set_item(dict.get(), name.c_str(),
                           PyFloat_FromDouble(static_cast<double>(units) / ResourceSet::kUnit)))
      return nullptr;
  }
  return dict.release();
}

PyObject* node_to_dict(const proto::Node& node) {
  PyPtr dict(json_to_py(api_json::node_json(node)));
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  set_item(d, "_available", json_to_py(api_json::amounts_json(node.available())));
  set_item(d, "_session_dir", py_text(node.session_dir()));
  return PyErr_Occurred() ? nullptr : dict.release();
}

PyObject* summed_resources_to_dict(const std::vector<proto::Node>& nodes, bool available) {
  return json_to_py(api_json::resources_json(
      nodes, available ? api_json::Amount::kAvailable : api_json::Amount::kTotal));
}

static PyObject* address_to_dict(const proto::WorkerAddress& address) {
  PyPtr node(py_text(to_hex(address.node_id())));
  return node ? Py_BuildValue("{s:s,s:i,s:O}", "IPAddress", address.ip().c_str(), "Port",
                              address.port(), "NodeID", node.get())
              : nullptr;
}

PyObject* actor_info_to_dict(const proto::ActorInfo& info) {
  PyPtr dict(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  set_item(d, "actor_id", py_bytes(info.spec().actor_id()));
  set_item(d, "job_id", py_bytes(info.spec().job_id()));
  set_item(d, "name", py_text(info.spec().name()));
  set_item(d, "namespace", py_text(info.spec().ray_namespace()));
  set_item(d, "class_name", py_text(info.spec().class_name()));
  set_item(d, "language", PyLong_FromLong(info.spec().creation().function().language()));
  set_item(d, "detached", PyBool_FromLong(info.spec().detached()));
  set_item(d, "handle_blob", py_bytes(info.spec().handle_blob()));
  set_item(d, "state", PyLong_FromLong(info.state()));
  set_item(d, "num_restarts", PyLong_FromLongLong(info.num_restarts()));
  set_item(d, "pid", PyLong_FromLong(info.pid()));
  set_item(d, "ip", py_text(info.address().ip()));
  set_item(d, "node_id", py_text(to_hex(info.address().node_id())));
  set_item(d, "address", address_to_dict(info.address()));
  set_item(d, "owner_address", address_to_dict(info.spec().owner()));
  set_item(d, "start_time", PyLong_FromLongLong(info.start_time_ms()));
  set_item(d, "end_time", PyLong_FromLongLong(info.end_time_ms()));
  set_item(d, "death_cause", py_text(info.death().message()));
  return PyErr_Occurred() ? nullptr : dict.release();
}

// Returns a list with the resources of each bundle, in the order of the bundles.
static PyObject* amounts_of_bundles(const proto::GroupSpec& spec) {
  PyPtr list(PyList_New(0));
  for (const auto& bundle : spec.bundles()) {
    PyPtr amounts(resources_to_dict(bundle.resources()));
    if (!list || !amounts || PyList_Append(list.get(), amounts.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* group_info_to_dict(const proto::GroupInfo& info) {
  PyPtr dict(PyDict_New());
  if (!dict) return nullptr;
  std::vector<std::string> nodes(info.spec().bundles_size());
  for (size_t i = 0; i < nodes.size() && i < static_cast<size_t>(info.bundle_nodes_size()); ++i)
    nodes[i] = to_hex(info.bundle_nodes(static_cast<int>(i)));
  PyObject* d = dict.get();
  set_item(d, "group_id", py_bytes(info.spec().group_id()));
  set_item(d, "name", py_text(info.spec().name()));
  set_item(d, "namespace", py_text(info.spec().ray_namespace()));
  set_item(d, "strategy", PyLong_FromLong(info.spec().strategy()));
  set_item(d, "bundles", amounts_of_bundles(info.spec()));
  set_item(d, "bundle_nodes", py_texts(nodes));
  set_item(d, "state", PyLong_FromLong(info.state()));
  set_item(d, "why", py_text(info.why()));
  set_item(d, "infeasible", PyBool_FromLong(info.infeasible()));
  set_item(d, "attempts", PyLong_FromLongLong(info.attempts()));
  set_item(d, "placed_us", PyLong_FromLongLong(info.placed_us()));
  set_item(d, "scheduling_us", PyLong_FromLongLong(info.scheduling_us()));
  return PyErr_Occurred() ? nullptr : dict.release();
}

}  // namespace rt::python
