// Private to common/rpc: finds the methods of a generated service by their hashes. A table is made
// once per service and process.
#pragma once

#include <google/protobuf/descriptor.h>

#include <utility>
#include <vector>

#include "common/rpc/frame.h"

namespace rt::rpc {

class MethodTable {
 public:
  explicit MethodTable(const google::protobuf::ServiceDescriptor* service);
  // Null when the service has no such method.
  const google::protobuf::MethodDescriptor* find(uint32_t hash) const;
  // The shared table of a service, which is never destroyed. Any thread. RT_CHECKs that the hashes
  // are unique within the service.
  static const MethodTable& of(const google::protobuf::ServiceDescriptor* service);
  bool collides_with(const MethodTable& other) const;

 private:
  // The methods are sorted by hash, since find() searches by bisection.
  std::vector<std::pair<uint32_t, const google::protobuf::MethodDescriptor*>> methods_;
};

}  // namespace rt::rpc
