#include "common/rpc/method_table.h"

#include <algorithm>
#include <map>
#include <memory>

#include "common/base/mutex.h"

namespace rt::rpc {

MethodTable::MethodTable(const google::protobuf::ServiceDescriptor* service) {
  for (int i = 0; i < service->method_count(); ++i) {
    methods_.emplace_back(method_hash(service->method(i)->full_name()), service->method(i));
  }
  std::sort(methods_.begin(), methods_.end());
  for (size_t i = 1; i < methods_.size(); ++i) RT_CHECK(methods_[i - 1].first != methods_[i].first);
}

const google::protobuf::MethodDescriptor* MethodTable::find(uint32_t hash) const {
  auto it = std::lower_bound(methods_.begin(), methods_.end(), hash,
                             [](const auto& entry, uint32_t h) { return entry.first < h; });
  return it != methods_.end() && it->first == hash ? it->second : nullptr;
}

bool MethodTable::collides_with(const MethodTable& other) const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [&](const auto& entry) { return other.find(entry.first) != nullptr; });
}

const MethodTable& MethodTable::of(const google::protobuf::ServiceDescriptor* service) {
  static Mutex mutex;
  // The tables are never destroyed, because connections may outlive main().
  static auto* const tables PT_GUARDED_BY(mutex) =
      new std::map<const google::protobuf::ServiceDescriptor*, std::unique_ptr<MethodTable>>;
  MutexLock lock(mutex);
  auto& table = (*tables)[service];
  if (!table) table = std::make_unique<MethodTable>(service);
  return *table;
}

}  // namespace rt::rpc
