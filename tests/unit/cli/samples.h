// Messages that the tests of several pages show.
#pragma once
#include <map>
#include <string>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt::cli {

inline proto::Resources resources_of(const std::map<std::string, double>& amounts) {
  proto::Resources out;
  ResourceSet::from_map(amounts)->to_proto(&out);
  return out;
}

}  // namespace rt::cli
