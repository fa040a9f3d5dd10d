#include "cluster_runtime.h"

#include <fmt/core.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <map>
#include <string_view>

#include "common/base/clock.h"
#include "common/resources/resource_set.h"
#include "errors.h"
#include "plain_pickle.h"
#include "worker/output.h"

namespace ray::internal {
namespace {

using rt::as_bytes;
namespace w = rt::worker;
namespace proto = rt::proto;

constexpr int kTaskRetries = 1;  // Used when the worker dies.
constexpr int64_t kStopGraceUs = 5'000'000;

class ClusterObject final : public ObjectRecord {
 public:
  ClusterObject(w::Ref ref, uint64_t generation)
      : ObjectRecord(ref.id().binary()), ref(std::move(ref)), generation(generation) {}
  const w::Ref ref;
  const uint64_t generation;  // That of the runtime, which may be gone.
};

class ClusterActor final : public ActorRecord {
 public:
  ClusterActor(w::Actor actor, uint64_t generation)
      : ActorRecord(actor.id.binary()), actor(std::move(actor)), generation(generation) {}
  const w::Actor actor;
  const uint64_t generation;
};

// Records a call of this process in the timeline where it profiles (RAY_PROFILING).
class Span {
 public:
  Span(w::Worker& worker, const char* type)
      : worker_(worker.profiles() ? &worker : nullptr),
        type_(type),
        start_us_(worker_ ? rt::wall_now_us() : 0) {}
  Span(const Span&) = delete;
  ~Span() {
    if (worker_) worker_->record_span(type_, start_us_, rt::wall_now_us(), "");
  }

 private:
  w::Worker* const worker_;
  const char* const type_;
  const int64_t start_us_;
};

// The number of runtimes that this process has made.
std::atomic<uint64_t> g_generations{0};

[[noreturn]] void throw_stale() {
  throw RayException("A reference from before ray::Shutdown() was used.");
}

int64_t deadline_of(int timeout_ms) {
  return timeout_ms < 0 ? -1 : rt::steady_now_us() + int64_t{timeout_ms} * 1000;
}

w::ValueParts parts_of(const EncodedValue& value, const std::vector<w::Ref>& contained) {
  w::ValueParts parts;
  parts.kind = value.is_void ? w::ValueKind::kNone : w::ValueKind::kMsgpack;
  parts.inband = as_bytes(value.bytes);
  parts.contained = contained;
  return parts;
}

void fill_resources(const std::unordered_map<std::string, double>& amounts, proto::Resources* out) {
  auto set = rt::ResourceSet::from_map({amounts.begin(), amounts.end()});
  if (!set) throw_error(set.error());
  set->to_proto(out);
}

// Sets neither a definition nor a key, because the worker imports the module.
void name_python_function(const std::string& text, const CallOptions& options,
                          proto::FunctionDescriptor& function) {
  function.set_language(proto::LANGUAGE_PYTHON);
  function.set_module(options.module);
  function.set_name(text);
}

void name_function(const std::string& text, bool method, proto::FunctionDescriptor& function) {
  function.set_language(proto::LANGUAGE_CPP);
  function.set_name(text);
  if (method) {
    MethodName name = split_method(text);
    function.set_class_name(name.class_name.empty() ? "C++ actor" : name.class_name);
    function.set_name(name.name);
  }
  XXH128_canonical_t key;
  XXH128_canonicalFromHash(&key, XXH3_128bits(text.data(), text.size()));
  function.set_key(key.digest, sizeof key.digest);
}

void fill_template(const std::string& text, bool method, const CallOptions& options,
                   proto::TaskTemplate* out) {
  proto::FunctionDescriptor& function = *out->mutable_function();
  if (options.python) {
    name_python_function(text, options, function);
  } else {
    name_function(text, method, function);
  }
  out->set_name(options.name.empty() ? display_name(function) : options.name);
  fill_resources(options.resources, out->mutable_resources());
  if (!options.group.id.empty()) {
    out->set_group_id(options.group.id);
    out->set_bundle_index(options.bundle_index);
    out->set_placed_explicitly(true);
  }
  out->set_num_returns(1);
  out->set_max_retries(method ? 0 : kTaskRetries);
  if (options.line > 0) out->set_call_site(fmt::format("{}:{}", options.file, options.line));
}

// The same for two calls only if fill_template() makes the same of both. A zero byte stands between
// the parts, because two different calls may have the same parts in a row, such as line 12 with the
// name "3" and line 1 with the name "23".
std::string template_key(const std::string& text, bool method, const CallOptions& options) {
  std::string key = text;
  const auto add = [&key](std::string_view part) {
    key += '\0';
    key += part;
  };
  add(method ? "m" : "f");
  add(options.python ? "p" : "c");
  add(options.module);
  add(options.file);
  add(std::to_string(options.line));
  add(options.name);
  add(options.group.id);
  add(std::to_string(options.bundle_index));
  for (const auto& [name, amount] :
       std::map<std::string, double>(options.resources.begin(), options.resources.end())) {
    add(name);
    add(fmt::format("{}", amount));
  }
  return key;
}

}  // namespace

StoredValue stored_value(const w::Value& value, std::shared_ptr<const void> keepalive) {
  StoredValue out;
  out.data = reinterpret_cast<const char*>(value.inband.data());
  out.size = value.inband.size();
  out.keepalive = std::move(keepalive);
  switch (value.kind) {
    case w::ValueKind::kError: throw_stored_error(value.inband);
    case w::ValueKind::kNone: out.format = ValueFormat::kNone; break;
    case w::ValueKind::kRaw: out.format = ValueFormat::kRaw; break;
    case w::ValueKind::kMsgpack: out.format = ValueFormat::kMsgpack; break;
    case w::ValueKind::kPickle: {
      if (!value.buffers.empty())
        throw RayException(
            "C++ cannot read this value, which Python stored: it holds arrays or other buffers. "
            "Pass bytes.");
      auto packed =
          std::make_shared<const std::string>(msgpack_of_pickle(rt::as_view(value.inband)));
      out.data = packed->data();
      out.size = packed->size();
      out.keepalive = std::move(packed);
      out.format = ValueFormat::kMsgpack;
      break;
    }
  }
  return out;
}

// The arguments in the form that the worker library takes: views of what the caller passed.
class ClusterRuntime::PackedArgs {
 public:
  PackedArgs(const ClusterRuntime& runtime, const std::vector<CallArg>& args, bool python) {
    contained_.reserve(args.size());
    values_.reserve(args.size() + 1);
    args_.reserve(args.size() + 1);
    if (python) {  // Python expects a first argument that marks such calls (python/binding/call.h).
      values_.emplace_back().kind = w::ValueKind::kMsgpack;
      args_.push_back({.value = &values_.back(), .ref = nullptr});
    }
    for (const CallArg& arg : args) {
      w::Arg out;
      if (arg.ref) {
        out.ref = &runtime.ref_of(arg.ref);
      } else {
        contained_.push_back(runtime.refs_in(arg.value));
        values_.push_back(parts_of(arg.value, contained_.back()));
        out.value = &values_.back();
      }
      args_.push_back(out);
    }
  }
  std::span<const w::Arg> get() const { return args_; }

 private:
  std::vector<std::vector<w::Ref>> contained_;
  std::vector<w::ValueParts> values_;
  std::vector<w::Arg> args_;
};

ClusterRuntime::ClusterRuntime(std::unique_ptr<w::Worker> worker, Options options)
    : generation_(++g_generations), worker_(std::move(worker)), options_(std::move(options)) {}

ClusterRuntime::~ClusterRuntime() { Stop(); }

void ClusterRuntime::Stop() {
  if (stopped_.exchange(true)) return;
  if (options_.prints_output) w::await_output(*worker_);
  worker_->stop();
  if (!options_.node) return;
  if (options_.node->lifeline_fd >= 0) close(options_.node->lifeline_fd);
  rt::launch::stop_processes(options_.node->processes, kStopGraceUs);
}

void ClusterRuntime::throw_if_stopped() const {
  if (stopped_) throw RayException("ray::Shutdown() was called while this call waited.");
}

std::string ClusterRuntime::Namespace() const {
  const CallContext* call = current_call();
  return call && call->ray_namespace ? *call->ray_namespace : options_.ray_namespace;
}

const w::Ref& ClusterRuntime::ref_of(const ObjectPtr& object) const {
  auto* known = dynamic_cast<const ClusterObject*>(object.get());
  if (!known || known->generation != generation_) throw_stale();
  return known->ref;
}

const w::Actor& ClusterRuntime::actor_of(const ActorPtr& actor) const {
  auto* known = dynamic_cast<const ClusterActor*>(actor.get());
  if (!known || known->generation != generation_) throw_stale();
  return known->actor;
}

ObjectPtr ClusterRuntime::object_of(w::Ref ref) const {
  return std::make_shared<const ClusterObject>(std::move(ref), generation_);
}

std::vector<w::Ref> ClusterRuntime::refs_of(const std::vector<ObjectPtr>& objects) const {
  std::vector<w::Ref> refs;
  refs.reserve(objects.size());
  for (const ObjectPtr& object : objects) refs.push_back(ref_of(object));
  return refs;
}

std::vector<w::Ref> ClusterRuntime::refs_in(const EncodedValue& value) const {
  std::vector<w::Ref> refs = refs_of(value.objects);
  for (const ActorPtr& actor : value.actors) {
    if (const w::Ref& handle = actor_of(actor).handle) refs.push_back(handle);
  }
  return refs;
}

ObjectPtr ClusterRuntime::Put(EncodedValue value) {
  const Span span(*worker_, "ray.put");
  std::vector<w::Ref> contained = refs_in(value);
  auto ref = worker_->put(parts_of(value, contained));
  if (!ref) throw_error(ref.error());
  return object_of(std::move(*ref));
}

std::vector<StoredValue> ClusterRuntime::Get(const std::vector<ObjectPtr>& objects,
                                             int timeout_ms) {
  const Span span(*worker_, "ray.get");
  std::vector<w::Ref> refs = refs_of(objects);
  int64_t deadline = deadline_of(timeout_ms);
  const int64_t since = rt::steady_now_us();
  w::Waited waited;
  do {
    waited = worker_->wait_all(refs, deadline, since);
    throw_if_stopped();
  } while (waited == w::Waited::kInterrupted);
  if (waited == w::Waited::kTimeout)
    throw RayTimeoutException(
        fmt::format("Get timed out: not all of the {} objects are ready after {} ms.", refs.size(),
                    timeout_ms));
  worker_->errors_seen(refs);
  if (waited == w::Waited::kFailed)
    refs = {refs[worker_->first_failed(refs, since)]};  // Its error is thrown below.
  std::vector<StoredValue> values;
  values.reserve(refs.size());
  for (const w::Ref& ref : refs) {
    auto value = worker_->value_of(ref, since);
    if (!value) throw_error(value.error());
    auto kept = std::make_shared<const w::Value>(std::move(*value));
    values.push_back(stored_value(*kept, kept));
  }
  return values;
}

std::vector<bool> ClusterRuntime::Wait(const std::vector<ObjectPtr>& objects, int num_objects,
                                       int timeout_ms) {
  if (num_objects < 0 || num_objects > static_cast<int>(objects.size()))
    throw RayException(fmt::format("Wait: num_objects is {}, but there are {} objects.",
                                   num_objects, objects.size()));
  const Span span(*worker_, "ray.wait");
  std::vector<w::Ref> refs = refs_of(objects);
  std::vector<bool> ready;
  int64_t deadline = deadline_of(timeout_ms);
  const int64_t since = rt::steady_now_us();
  w::Waited waited;
  do {
    waited =
        worker_->wait_some(refs, static_cast<size_t>(num_objects), deadline, since, true, &ready);
    throw_if_stopped();
  } while (waited == w::Waited::kInterrupted);
  worker_->errors_seen(refs);
  return ready;
}

ObjectPtr ClusterRuntime::FindObject(const std::string& id) {
  w::Ref ref = rt::ObjectId::is_valid(id) ? worker_->find(rt::ObjectId::from_binary(id)) : w::Ref();
  if (!ref)
    throw RayException(fmt::format(
        "Object {} is not known to this process: pass the ObjectRef itself from where it is.",
        rt::to_hex(id)));
  return object_of(std::move(ref));
}

const w::Template* ClusterRuntime::template_for(const std::string& text, bool method,
                                                const CallOptions& options) {
  const std::string key = template_key(text, method, options);
  rt::MutexLock lock(mutex_);
  const w::Template*& known = templates_[key];
  if (!known) {
    proto::TaskTemplate spec;
    fill_template(text, method, options, &spec);
    auto made = worker_->make_template(std::move(spec));
    if (!made) throw_error(made.error());
    known = *made;
  }
  return known;
}

ObjectPtr ClusterRuntime::CallFunction(const std::string& function, const CallOptions& options,
                                       std::vector<CallArg> args) {
  const Span span(*worker_, "submit_task");
  PackedArgs packed(*this, args, options.python);
  std::vector<w::Ref> returns;
  if (auto done = worker_->submit(template_for(function, false, options), packed.get(), &returns);
      !done)
    throw_error(done.error());
  return object_of(std::move(returns.at(0)));
}

ActorPtr ClusterRuntime::CreateActor(const std::string& factory, const ActorOptions& options,
                                     std::vector<CallArg> args) {
  if (options.max_concurrency < 1) throw RayException("SetMaxConcurrency needs 1 or more.");
  if (options.max_restarts < -1)
    throw RayException("SetMaxRestarts needs 0 or more, or -1 for no limit.");
  w::ActorOptions actor;
  proto::ActorSpec& spec = actor.spec;
  CallOptions creation = options.call;
  creation.name.clear();
  fill_template(creation.python ? "__init__" : factory, false, creation, spec.mutable_creation());
  if (creation.python) {
    spec.mutable_creation()->mutable_function()->set_class_name(factory);
    spec.mutable_creation()->set_num_returns(0);
  }
  *spec.mutable_placement() = spec.creation().resources();
  spec.set_name(options.call.name);
  spec.set_ray_namespace(options.ray_namespace.empty() ? Namespace() : options.ray_namespace);
  spec.set_detached(options_.detached_actors);
  spec.set_max_restarts(options.max_restarts);
  spec.set_max_concurrency(options.max_concurrency);
  spec.set_max_pending_calls(-1);
  spec.set_class_name(creation.python ? factory : class_of_factory(factory));
  const Span span(*worker_, "submit_task");
  PackedArgs packed(*this, args, creation.python);
  auto made = worker_->create_actor(std::move(actor), packed.get());
  if (!made) throw_error(made.error());
  return std::make_shared<const ClusterActor>(std::move(*made), generation_);
}

ObjectPtr ClusterRuntime::CallMethod(const ActorPtr& actor, const std::string& method,
                                     const CallOptions& options, std::vector<CallArg> args) {
  const Span span(*worker_, "submit_task");
  PackedArgs packed(*this, args, options.python);
  std::vector<w::Ref> returns;
  auto done = worker_->submit_method(actor_of(actor).id, template_for(method, true, options), {},
                                     packed.get(), &returns);
  if (!done) throw_error(done.error());
  return object_of(std::move(returns.at(0)));
}

void ClusterRuntime::KillActor(const ActorPtr& actor, bool no_restart) {
  if (auto done = worker_->kill_actor(actor_of(actor).id, no_restart); !done)
    throw_error(done.error());
}

ActorPtr ClusterRuntime::GetActor(const std::string& name, const std::string& ray_namespace) {
  proto::ActorInfo info;
  auto found = worker_->get_actor(name, ray_namespace.empty() ? Namespace() : ray_namespace, &info);
  if (found) return std::make_shared<const ClusterActor>(std::move(*found), generation_);
  if (found.error().code != rt::Code::kNotFound) throw_error(found.error());
  return nullptr;
}

ActorPtr ClusterRuntime::FindActor(const std::string& id) {
  if (!rt::ActorId::is_valid(id))
    throw RayException(
        "The bytes are not an actor id (16 bytes from ActorHandle::ID()) or a packed actor "
        "handle.");
  rt::ActorId actor = rt::ActorId::from_binary(id);
  // The handle is counted when its counted reference came along with it, else it is weak, as a
  // looked-up one is.
  return std::make_shared<const ClusterActor>(
      worker_->actor_from(actor, worker_->find(rt::handle_object_of(actor))), generation_);
}

bool ClusterRuntime::InActor() const { return current_call() && current_call()->in_actor; }
bool ClusterRuntime::WasCurrentActorRestarted() const {
  return current_call() && current_call()->restarted;
}

}  // namespace ray::internal
