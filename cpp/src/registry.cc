#include "ray/api/registry.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <algorithm>

#include <cmath>
#include <cstdlib>
#include <map>

#include "common/base/mutex.h"
#include "common/base/utf8.h"

namespace ray::internal {
namespace {

thread_local EncodedValue* t_packing = nullptr;

// The file that a registered function comes from, for messages.
std::string file_of(const FunctionEntry& entry) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(entry.invoke), &info) && info.dli_fname)
    return info.dli_fname;
  return "this program";
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

}  // namespace

ObjectRecord::~ObjectRecord() = default;
ActorRecord::~ActorRecord() = default;
Runtime::~Runtime() = default;

PackScope::PackScope(EncodedValue& value) : outer_(t_packing) { t_packing = &value; }
PackScope::~PackScope() { t_packing = outer_; }

void NotePacked(const ObjectPtr& object) {
  if (t_packing) t_packing->objects.push_back(object);
}
void NotePacked(const ActorPtr& actor) {
  if (t_packing) t_packing->actors.push_back(actor);
}

std::string DemangledName(const char* name) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && demangled ? demangled : name;
  std::free(demangled);
  return out;
}

struct ActorInstance::Bases {
  rt::Mutex mutex;
  std::vector<std::pair<std::type_index, void*>> known GUARDED_BY(mutex);
};

ActorInstance::ActorInstance(std::shared_ptr<void> object, std::type_index type,
                             void (*throw_object)(void*))
    : object_(std::move(object)),
      type_(type),
      throw_object_(throw_object),
      bases_(std::make_unique<Bases>()) {}
ActorInstance::~ActorInstance() = default;

void* ActorInstance::KnownBase(std::type_index type) {
  rt::MutexLock lock(bases_->mutex);
  for (const auto& [known, base] : bases_->known) {
    if (known == type) return base;
  }
  return nullptr;
}

void ActorInstance::RememberBase(std::type_index type, void* base) {
  rt::MutexLock lock(bases_->mutex);
  bases_->known.emplace_back(type, base);
}

struct Registry::Impl {
  rt::SharedMutex mutex;
  std::map<std::string, FunctionEntry> by_text GUARDED_BY(mutex);
  std::map<std::pair<std::type_index, std::string>, const FunctionEntry*> by_pointer
      GUARDED_BY(mutex);
  bool loading GUARDED_BY(mutex) = false;
  std::vector<std::string> complaints GUARDED_BY(mutex);
};

Registry::Registry() : impl_(new Impl) {}

Registry& Registry::Instance() {
  static Registry* registry = new Registry;
  return *registry;
}

void Registry::Add(FunctionEntry entry) {
  rt::WriterLock lock(impl_->mutex);
  auto known = impl_->by_text.find(entry.text);
  if (known != impl_->by_text.end()) {
    std::string complaint =
        fmt::format("RAY_REMOTE: the function {} is registered twice: in {} and in {}.", entry.text,
                    file_of(known->second), file_of(entry));
    if (!impl_->loading) throw RayException(complaint);
    impl_->complaints.push_back(complaint);
    return;
  }
  auto [it, added] = impl_->by_text.emplace(entry.text, std::move(entry));
  impl_->by_pointer.try_emplace({it->second.type, it->second.pointer}, &it->second);
}

const FunctionEntry* Registry::Find(const std::string& text) const {
  rt::ReaderLock lock(impl_->mutex);
  auto it = impl_->by_text.find(text);
  return it == impl_->by_text.end() ? nullptr : &it->second;
}

const FunctionEntry* Registry::Find(std::type_index type, const std::string& pointer) const {
  rt::ReaderLock lock(impl_->mutex);
  auto it = impl_->by_pointer.find({type, pointer});
  return it == impl_->by_pointer.end() ? nullptr : it->second;
}

const FunctionEntry* Registry::FindMethod(const std::string& name) const {
  rt::ReaderLock lock(impl_->mutex);
  const FunctionEntry* found = nullptr;
  const std::string end = "::" + name;
  for (const auto& [text, entry] : impl_->by_text) {
    if (!entry.is_method || !text.starts_with('&') || !text.ends_with(end)) continue;
    if (found) return nullptr;
    found = &entry;
  }
  return found;
}

void Registry::BeginLoading() {
  rt::WriterLock lock(impl_->mutex);
  impl_->loading = true;
}

std::vector<std::string> Registry::EndLoading() {
  rt::WriterLock lock(impl_->mutex);
  impl_->loading = false;
  return std::move(impl_->complaints);
}

std::vector<std::string> Registry::Texts() const {
  rt::ReaderLock lock(impl_->mutex);
  std::vector<std::string> texts;
  for (const auto& [text, entry] : impl_->by_text) texts.push_back(text);
  return texts;
}

std::vector<std::string> SplitRegistration(const std::string& text, std::size_t count) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (char c : text) {
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  parts.push_back(trimmed(part));
  if (parts.size() != count)
    throw RayException(
        fmt::format("RAY_REMOTE({}): {} functions, but {} names.", text, count, parts.size()));
  return parts;
}

void ThrowArgumentCount(std::size_t expected, std::size_t got) {
  throw RayException(
      fmt::format("The function takes {} arguments and was called with {}.", expected, got));
}

void ThrowNotRegistered(const std::string& type) {
  throw RayException(
      fmt::format("The function (of type {}) is not registered: add RAY_REMOTE(name) beside its "
                  "definition, spelled as at the call.",
                  DemangledName(type.c_str())));
}

void CheckResources(const std::unordered_map<std::string, double>& resources) {
  for (const auto& [name, amount] : resources) {
    if (name.empty() || amount == 0)
      throw RayException("Resource names cannot be empty and amounts cannot be 0.");
    if (const std::string text = rt::valid_utf8(name); text != name)
      throw RayException(fmt::format("The name of resource {} is not valid UTF-8.", text));
    if (!std::isfinite(amount) || amount < 0)
      throw RayException(fmt::format("The amount of resource {} must be a positive number, not {}.",
                                     name, amount));
    if (amount > 1 && amount != std::floor(amount))
      throw RayException(fmt::format(
          "The amount of resource {} is {}: amounts above 1 must be whole numbers.", name, amount));
  }
}

void CheckOptions(const CallOptions& options) {
  CheckResources(options.resources);
  const auto& bundles = options.group.bundles;
  if (options.group.id.empty() || bundles.empty()) return;
  if (options.bundle_index < -1 || options.bundle_index >= static_cast<int>(bundles.size()))
    throw RayException(
        fmt::format("The placement group has no bundle {}: it has {}, counted from 0, and -1 means "
                    "any of them.",
                    options.bundle_index, bundles.size()));
  auto fits = [&](const std::unordered_map<std::string, double>& bundle) {
    return std::all_of(options.resources.begin(), options.resources.end(), [&](const auto& wanted) {
      auto room = bundle.find(wanted.first);
      return room != bundle.end() && room->second >= wanted.second;
    });
  };
  if (std::none_of(bundles.begin(), bundles.end(), fits))
    throw RayException(
        "The resources of the call fit into no bundle of its placement group: ask for less, or "
        "create a group with larger bundles.");
}

}  // namespace ray::internal
