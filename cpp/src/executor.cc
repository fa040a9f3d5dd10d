#include "executor.h"

#include <fmt/core.h>

#include <msgpack.hpp>

#include "errors.h"
#include "worker_output.h"

namespace ray::internal {
namespace {

namespace w = rt::worker;

// Splits a msgpack array into its encoded elements; returns nothing when `bytes` is no array.
std::vector<std::string_view> array_items(std::string_view bytes) {
  std::vector<std::string_view> items;
  if (bytes.empty()) return items;  // The value of a void function.
  msgpack::object_handle whole = msgpack::unpack(bytes.data(), bytes.size());
  if (whole->type != msgpack::type::ARRAY) return items;
  // The elements follow a head of 1, 3 or 5 bytes, each with an encoding of its own.
  auto head = static_cast<uint8_t>(bytes[0]);
  size_t at = head == 0xdc ? 3 : head == 0xdd ? 5 : 1;
  for (uint32_t i = 0; i < whole->via.array.size; ++i) {
    size_t begin = at;
    msgpack::unpack(bytes.data(), bytes.size(), at);
    items.push_back(bytes.substr(begin, at - begin));
  }
  return items;
}

// The arguments as invokers take them: views into the task, which outlives the call.
Arguments arguments_of(w::ExecutingTask& task) {
  Arguments args;
  args.reserve(task.args().size());
  for (const w::Value& value : task.args()) args.push_back(stored_value(value, nullptr));
  return args;
}

}  // namespace

void CppExecutor::execute(std::unique_ptr<w::ExecutingTask> task) {
  const auto* actor = task->actor_spec();
  if (!actor || task->is_actor_creation() || actor->max_concurrency() <= 1) {
    run(*task);
    return;
  }
  if (threads_.empty()) start_threads(actor->max_concurrency());
  rt::MutexLock lock(mutex_);
  queue_.push_back(std::move(task));
  changed_.notify_one();
}

void CppExecutor::start_threads(int count) {
  for (int i = 0; i < count; ++i) threads_.emplace_back([this] { run_thread(); });
}

void CppExecutor::run_thread() {
  rt::MutexLock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !stopping_) changed_.wait(mutex_);
    if (queue_.empty()) return;
    auto task = std::move(queue_.front());
    queue_.pop_front();
    ++busy_;
    lock.unlock();
    run(*task);
    task.reset();  // Sends the reply.
    lock.lock();
    --busy_;
  }
}

bool CppExecutor::stop() {
  {
    rt::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (busy_ > 0) return false;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return true;
}

void CppExecutor::run(w::ExecutingTask& task) {
  CallOutcome outcome;
  if (exited_) {
    CallFailure failure;
    failure.exit_actor = true;
    return fail(task, failure);
  }
  try {
    adopt_job(task.job_config());
    if (task.num_returns() < 0) {
      throw RayException(
          "num_returns=\"streaming\" and \"dynamic\" need a generator, which C++ functions are "
          "not: call " +
          task.spec().name() + " without num_returns");
    }
    Function& function = function_of(task);
    set_output_marker(&function.marker, task.id(), task.attempt());
    Arguments args = arguments_of(task);
    CallContext context{task.actor_spec() != nullptr, task.actor_restarts() > 0, &ray_namespace_};
    if (!task.started()) return;  // The task was cancelled and has been answered.
    outcome = run_call(*function.entry, instance_.get(), args, context);
  } catch (const RayException& e) {  // Thrown before user code ran.
    outcome.failure = CallFailure{DemangledName(typeid(e).name()), e.what()};
  }
  flush_output();
  task.executed();
  task.args().clear();
  if (const auto& failure = outcome.failure) {
    if (failure->exit_actor && !exited_.exchange(true)) runtime_.worker().exit_actor();
    return fail(task, *failure);
  }
  finish(task, std::move(outcome.result));
}

void CppExecutor::finish(w::ExecutingTask& task, CallResult result) {
  if (task.is_actor_creation()) {
    instance_ = std::move(result.instance);
    return task.finish({});
  }
  std::vector<w::Ref> contained = runtime_.refs_in(result.value);
  w::ValueParts parts;
  parts.kind = result.value.is_void ? w::ValueKind::kNone : w::ValueKind::kMsgpack;
  parts.inband = rt::as_bytes(result.value.bytes);
  parts.contained = contained;
  if (task.num_returns() == 1) return task.finish({&parts, 1});
  finish_split(task, parts);
}

// A Python caller's num_returns: the results are the elements of one array. Each of them holds all
// references in the array.
void CppExecutor::finish_split(w::ExecutingTask& task, const w::ValueParts& whole) {
  auto count = static_cast<size_t>(task.num_returns());
  std::vector<std::string_view> items = array_items(rt::as_view(whole.inband));
  if (count > 0 && items.size() != count) {
    CallFailure failure;
    failure.type = "ray::internal::RayException";
    failure.message = fmt::format(
        "The caller set num_returns={}, so the function must return an array of {} elements, "
        "which it did not.",
        count, count);
    return fail(task, failure);
  }
  std::vector<w::ValueParts> parts(count, whole);
  for (size_t i = 0; i < count; ++i) parts[i].inband = rt::as_bytes(items[i]);
  task.finish(parts);
}

void CppExecutor::fail(w::ExecutingTask& task, const CallFailure& failure) {
  task.args().clear();
  std::string inband = call_error(task, runtime_.worker().context(), failure).SerializeAsString();
  w::ValueParts parts;
  parts.kind = w::ValueKind::kError;
  parts.inband = rt::as_bytes(inband);
  // Only Python callers can set retry_exceptions, and only to a bool: exception classes are
  // Python's.
  task.fail(parts, task.spec().retry_exceptions() && !failure.exit_actor && !task.cancelled());
}

void CppExecutor::adopt_job(const rt::proto::JobConfig& job) {
  rt::MutexLock lock(job_mutex_);
  if (job.job_id() == job_id_) return;
  job_id_ = job.job_id();
  ray_namespace_ = job.ray_namespace();
  code_.load({job.code_search_path().begin(), job.code_search_path().end()});
  auto lifetime = job.metadata().find(kDefaultLifetimeKey);
  runtime_.set_detached_actors(lifetime != job.metadata().end() && lifetime->second == "detached");
}

CppExecutor::Function& CppExecutor::function_of(w::ExecutingTask& task) {
  std::unique_ptr<w::LoadedFunction>& kept = task.loaded_function();
  rt::MutexLock lock(job_mutex_);
  if (!kept) {
    auto function = std::make_unique<Function>();
    function->entry = &find(task);
    const auto* actor = task.actor_spec();
    function->marker = fmt::format(":job_id:{}\n{}\n", rt::to_hex(job_id_),
                                   actor ? ":actor_name:" + actor->class_name()
                                         : ":task_name:" + display_name(task.spec().function()));
    kept = std::move(function);
  }
  return static_cast<Function&>(*kept);
}

const FunctionEntry& CppExecutor::find(const w::ExecutingTask& task) {
  const auto& function = task.spec().function();
  const bool method = task.actor_spec() && !task.is_actor_creation();
  const FunctionEntry* entry =
      method ? Registry::Instance().Find(join_method(function.class_name(), function.name()))
             : nullptr;
  if (!entry) entry = Registry::Instance().Find(function.name());
  // A caller of another language may not know the class, or may know a derived one.
  if (!entry && method) entry = Registry::Instance().FindMethod(function.name());
  if (!entry) {
    throw RayFunctionNotFound(
        fmt::format("The function {} is not registered in any library this worker loaded. "
                    "Functions that run in the cluster must be "
                    "registered with RAY_REMOTE in a shared library of the code search path; those "
                    "of the program itself are not "
                    "found by workers. {}",
                    display_name(function), code_.describe()));
  }
  if (entry->is_method != method || (task.is_actor_creation() && !entry->is_factory)) {
    throw RayException(fmt::format("{} is registered as a {}, and was called as a {}.", entry->text,
                                   entry->is_method    ? "method"
                                   : entry->is_factory ? "factory"
                                                       : "function",
                                   method                     ? "method"
                                   : task.is_actor_creation() ? "factory"
                                                              : "function"));
  }
  return *entry;
}

}  // namespace ray::internal
