// The extension module ray._raylet.
#include "python/binding/call.h"
#include "python/binding/cluster.h"
#include "python/binding/commands.h"
#include "python/binding/completions.h"
#include "python/binding/error_codes.h"
#include "python/binding/executor.h"
#include "python/binding/groups.h"
#include "python/binding/metrics.h"
#include "python/binding/object_ref.h"
#include "python/binding/object_ref_generator.h"
#include "python/binding/objects.h"
#include "python/binding/plain_values.h"
#include "python/binding/py.h"
#include "python/binding/python_frames.h"
#include "python/binding/runtime.h"
#include "python/binding/serialize.h"
#include "python/binding/spans.h"
#include "python/binding/state.h"

namespace {

PyModuleDef g_definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "ray._raylet",
    .m_doc = "The core worker library, for the ray package. Not a public interface.",
    .m_size = -1,
};

}  // namespace

PyMODINIT_FUNC PyInit__raylet() {
  using namespace rt::python;
  PyPtr module(PyModule_Create(&g_definition));
  if (!module) return nullptr;
  PyObject* m = module.get();
  bool ok = add_runtime(m) && add_object_ref(m) && add_object_ref_generator(m) &&
            add_serialize(m) && add_calls(m) && add_objects(m) && add_cluster(m) &&
            add_completions(m) && add_executor(m) && add_plain_values(m) && add_metrics(m) &&
            add_commands(m) && add_state(m) && add_spans(m) && add_groups(m) && add_error_codes(m);
  offer_python_frames();
#ifdef __OPTIMIZE__
  constexpr bool optimized = true;
#else
  constexpr bool optimized = false;
#endif
  if (!ok || PyModule_AddObjectRef(m, "OPTIMIZED", optimized ? Py_True : Py_False) < 0)
    return nullptr;
  return module.release();
}
