#include "ray/api.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "common/base/mutex.h"
#include "invoke.h"
#include "runtime.h"

namespace ray {
namespace internal {
namespace {

// Ended by Shutdown() or at exit only: references and threads of the program may outlive main(), so
// the pointer itself is never destroyed.
std::atomic<std::shared_ptr<Runtime>>& g_runtime = *new std::atomic<std::shared_ptr<Runtime>>();
rt::Mutex g_init_mutex;  // Held while the runtime is made or ended.

void init(const RayConfig& config, int argc, char** argv) {
  rt::MutexLock lock(g_init_mutex);
  if (g_runtime.load()) return;
  InitOptions options = init_options(config, argc, argv);
  g_runtime = std::shared_ptr<Runtime>(options.local_mode ? make_local_runtime(options)
                                                          : make_cluster_runtime(options));
  static bool registered = std::atexit([] { clear_runtime(); }) == 0;
  (void)registered;
}

}  // namespace

std::shared_ptr<Runtime> CurrentRuntime() {
  std::shared_ptr<Runtime> runtime = g_runtime.load();
  if (!runtime) throw RayException("ray::Init() has not been called (or ray::Shutdown() has).");
  return runtime;
}

bool set_runtime(std::unique_ptr<Runtime> runtime) {
  rt::MutexLock lock(g_init_mutex);
  if (g_runtime.load()) return false;
  g_runtime = std::shared_ptr<Runtime>(std::move(runtime));
  return true;
}

void clear_runtime() {
  rt::MutexLock lock(g_init_mutex);
  if (std::shared_ptr<Runtime> runtime = g_runtime.exchange(nullptr)) runtime->Stop();
}

}  // namespace internal

void Init() {
  RayConfig config;
  internal::init(config, 0, nullptr);
}
void Init(RayConfig& config) { internal::init(config, 0, nullptr); }
void Init(RayConfig& config, int argc, char** argv) { internal::init(config, argc, argv); }

bool IsInitialized() { return internal::g_runtime.load() != nullptr; }
void Shutdown() { internal::clear_runtime(); }

std::string GetNamespace() { return internal::CurrentRuntime()->Namespace(); }
bool WasCurrentActorRestarted() { return internal::CurrentRuntime()->WasCurrentActorRestarted(); }

void ExitActor() {
  if (!internal::CurrentRuntime()->InActor())
    throw std::logic_error("ray::ExitActor() was called outside of an actor.");
  throw internal::RayIntentionalSystemExitException("the actor called ray::ExitActor()");
}

}  // namespace ray
