// Private to common/rpc: the methods of a generated service by hash. Made once per service and
// process.
#pragma once

#include <google/protobuf/descriptor.h>

#include <utility>
#include <vector>

#include "common/rpc/frame.h"

namespace rt::rpc {

class MethodTable {
 public:
  explicit MethodTable(const google::protobuf::ServiceDescriptor* service);
  const google::protobuf::MethodDescriptor* find(uint32_t hash) const;
  // The shared table of a service; any thread. RT_CHECKs that hashes are unique in the service.
  static const MethodTable& of(const google::protobuf::ServiceDescriptor* service);
  bool collides_with(const MethodTable& other) const;

 private:
  std::vector<std::pair<uint32_t, const google::protobuf::MethodDescriptor*>> methods_;  // sorted
};

}  // namespace rt::rpc
