// Protobuf messages from and to Python dicts: only start-up and slow paths.
#pragma once

#include <vector>

#include "common/proto/common.pb.h"
#include "python/binding/py.h"

namespace rt::python {

// Keys are the proto's field names; absent or None keys keep their default. False with a Python
// error.
bool template_from_dict(PyObject* dict, proto::TaskTemplate* out);
bool actor_from_dict(PyObject* dict, proto::ActorSpec* out);
bool job_config_from_dict(PyObject* dict, proto::JobConfig* out);

PyObject* resources_to_dict(const proto::Resources& resources);  // amounts, not units
PyObject* node_to_dict(const proto::Node& node);                 // as ray.nodes() entries
PyObject* summed_resources_to_dict(const std::vector<proto::Node>& nodes,
                                   bool available);  // as ray.cluster_resources()
PyObject* actor_info_to_dict(const proto::ActorInfo& info);

// Typed reads of dict[key]; absent or None leaves `out` alone.
bool read(PyObject* dict, const char* key, std::string* out);
bool read(PyObject* dict, const char* key, int64_t* out);
bool read(PyObject* dict, const char* key, int32_t* out);
bool read(PyObject* dict, const char* key, bool* out);

}  // namespace rt::python
