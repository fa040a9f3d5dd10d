#include "observability/state/usage.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"

namespace rt::state {
namespace {

double amount_of(int64_t units) { return static_cast<double>(units) / ResourceSet::kUnit; }

}  // namespace

std::map<std::string, Usage> usage_of(const std::vector<const proto::Node*>& nodes) {
  std::map<std::string, Usage> usage;
  for (const auto* node : nodes) {
    const ResourceSet total = ResourceSet::from_proto(node->total()),
                      available = ResourceSet::from_proto(node->available()),
                      reserved = ResourceSet::from_proto(node->reserved()),
                      reserved_used = ResourceSet::from_proto(node->reserved_used());
    // Differences are taken in integral units, so they are exact.
    for (const auto& [name, units] : total.all()) {
      Usage& one = usage[name];
      const int64_t outside = units - available.units(name) - reserved.units(name);
      one.used += amount_of(std::max<int64_t>(0, outside) + reserved_used.units(name));
      one.total += amount_of(units);
      one.reserved += amount_of(reserved.units(name));
      one.reserved_used += amount_of(reserved_used.units(name));
    }
  }
  return usage;
}

std::string usage_text(const std::string& resource, const Usage& usage) {
  const bool bytes = resource == "memory" || resource == "object_store_memory";
  const auto text = [bytes](double value) { return bytes ? binary_bytes(value) : amount(value); };
  std::string out =
      fmt::format("{}/{} {}", text(usage.used), text(usage.total), printable(resource));
  if (usage.reserved > 0)
    out += fmt::format(" ({} used of {} reserved in placement groups)", text(usage.reserved_used),
                       text(usage.reserved));
  return out;
}

}  // namespace rt::state
