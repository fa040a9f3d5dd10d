#include "python/binding/error_codes.h"

#include "common/base/status.h"
#include "common/proto/common.pb.h"
#include "worker/core/death.h"
#include "worker/session_over.h"

namespace rt::python {
namespace {

constexpr struct {
  const char* name;
  int number;
} kErrorCodes[] = {
    {"INVALID", static_cast<int>(Code::kInvalid)},
    {"NOT_FOUND", static_cast<int>(Code::kNotFound)},
    {"ALREADY_EXISTS", static_cast<int>(Code::kAlreadyExists)},
    {"TIMEOUT", static_cast<int>(Code::kTimeout)},
    {"UNAVAILABLE", static_cast<int>(Code::kUnavailable)},
    {"UNAUTHENTICATED", static_cast<int>(Code::kUnauthenticated)},
    {"WRONG_VERSION", static_cast<int>(Code::kWrongVersion)},
    {"WRONG_CLUSTER", static_cast<int>(Code::kWrongCluster)},
    {"PROTOCOL", static_cast<int>(Code::kProtocol)},
    {"OBJECT_STORE_FULL", static_cast<int>(Code::kObjectStoreFull)},
    {"OUT_OF_DISK", static_cast<int>(Code::kOutOfDisk)},
    {"OBJECT_LOST", static_cast<int>(Code::kObjectLost)},
    {"OWNER_DIED", static_cast<int>(Code::kOwnerDied)},
    {"WORKER_CRASHED", static_cast<int>(Code::kWorkerCrashed)},
    {"NODE_DIED", static_cast<int>(Code::kNodeDied)},
    {"ACTOR_DIED", static_cast<int>(Code::kActorDied)},
    {"ACTOR_UNAVAILABLE", static_cast<int>(Code::kActorUnavailable)},
    {"CANCELLED", static_cast<int>(Code::kCancelled)},
    {"IO", static_cast<int>(Code::kIo)},
    {"INTERNAL", static_cast<int>(Code::kInternal)},
    {"UNSUPPORTED", static_cast<int>(Code::kUnsupported)},
    {"RESOURCE_EXHAUSTED", static_cast<int>(Code::kResourceExhausted)},
    {"OUT_OF_MEMORY", static_cast<int>(Code::kOutOfMemory)},
    {"UNSCHEDULABLE", static_cast<int>(Code::kUnschedulable)},
    {"LOCAL_NODE_DIED", static_cast<int>(Code::kLocalNodeDied)},
    {"RUNTIME_ENV_SETUP", static_cast<int>(Code::kRuntimeEnvSetup)},
    {"UNSCHEDULABLE_EXIT", proto::ExitInfo::UNSCHEDULABLE},
    {"GROUP_REMOVED_EXIT", proto::ExitInfo::GROUP_REMOVED},
};

}  // namespace

bool add_error_codes(PyObject* module) {
  PyPtr codes(PyDict_New());
  if (!codes) return false;
  for (const auto& [name, number] : kErrorCodes) {
    if (!set_item(codes.get(), name, PyLong_FromLong(number))) return false;
  }
  return PyModule_AddObjectRef(module, "ERROR_CODES", codes.get()) == 0 &&
         PyModule_AddIntConstant(module, "TASK_RAISED", worker::kTaskRaised) == 0 &&
         PyModule_AddStringConstant(module, "SESSION_OVER",
                                    worker::session_over().message.c_str()) == 0;
}

}  // namespace rt::python
