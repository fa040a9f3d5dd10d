// Protobuf messages from and to Python dicts, for start-up and slow paths.
#pragma once

#include <vector>

#include "common/proto/common.pb.h"
#include "python/binding/py.h"

namespace rt::python {

// The keys are the proto's field names. Absent or None keys keep their default. False with a
// Python error.
bool template_from_dict(PyObject* dict, proto::TaskTemplate* out);
bool actor_from_dict(PyObject* dict, proto::ActorSpec* out);
bool group_from_dict(PyObject* dict, proto::GroupSpec* out);
bool job_config_from_dict(PyObject* dict, proto::JobConfig* out);
// The names of proto::SchedulingStrategy as a tuple, in the order of their numbers.
PyObject* scheduling_strategies(PyObject*, PyObject*);

// Amounts as users give them, not the proto's units.
PyObject* resources_to_dict(const proto::Resources& resources);
// A node as in ray.nodes().
PyObject* node_to_dict(const proto::Node& node);
// The sums as in ray.cluster_resources() and, with `available`, ray.available_resources().
PyObject* summed_resources_to_dict(const std::vector<proto::Node>& nodes, bool available);
PyObject* actor_info_to_dict(const proto::ActorInfo& info);
// Ids of the group as bytes, of nodes as hex ("": the bundle has none).
PyObject* group_info_to_dict(const proto::GroupInfo& info);

// Typed reads of dict[key]. An absent or None key leaves `out` alone. False with a Python error.
bool read(PyObject* dict, const char* key, std::string* out);
bool read(PyObject* dict, const char* key, int64_t* out);
bool read(PyObject* dict, const char* key, int32_t* out);
bool read(PyObject* dict, const char* key, bool* out);

}  // namespace rt::python
