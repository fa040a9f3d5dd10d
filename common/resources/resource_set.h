// Amounts of named resources ("CPU", "memory", "GPU", custom ones), in units of 1/10000 so that
// sums are exact.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt::proto {
class Resources;
}

namespace rt {

class ResourceSet {
 public:
  static constexpr int64_t kUnit = 10'000;
  static constexpr double kMaxAmount = 1e14;

  ResourceSet() = default;
  // kInvalid for amounts that are negative, not finite, finer than 1/10000, or absurd (above
  // kMaxAmount). Zero amounts are dropped.
  static Result<ResourceSet> from_map(const std::map<std::string, double>& amounts);
  // Drops amounts that are not positive or above kMaxAmount.
  static ResourceSet from_proto(const proto::Resources& resources);
  void to_proto(proto::Resources* out) const;

  double get(std::string_view name) const;
  int64_t units(std::string_view name) const;
  void set_units(const std::string& name, int64_t units);  // Removes the resource if units <= 0.
  bool empty() const { return units_.empty(); }
  const std::map<std::string, int64_t, std::less<>>& all() const { return units_; }

  bool contains(const ResourceSet& request) const;  // Whether request <= this in every resource.
  // A sum over nodes that is more than the units can count (922 T) stays at that.
  void add(const ResourceSet& other);
  void subtract(const ResourceSet& other);  // RT_CHECKs contains(other).
  // Like subtract(), but amounts may become negative: a task that resumes after blocking takes its
  // CPU back at once.
  void subtract_allowing_debt(const ResourceSet& other);

  std::string to_string() const;  // {'CPU': 1.0, 'a': 0.5}
  friend bool operator==(const ResourceSet&, const ResourceSet&) = default;
  friend auto operator<=>(const ResourceSet&, const ResourceSet&) = default;

 private:
  std::map<std::string, int64_t, std::less<>> units_;
};

}  // namespace rt
