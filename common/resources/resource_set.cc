#include "common/resources/resource_set.h"

#include <fmt/core.h>

#include <cmath>

#include "common/base/utf8.h"
#include "common/proto/common.pb.h"

namespace rt {

Result<ResourceSet> ResourceSet::from_map(const std::map<std::string, double>& amounts) {
  ResourceSet set;
  for (const auto& [name, amount] : amounts) {
    if (name.empty()) return make_error(Code::kInvalid, "a resource has an empty name");
    if (std::string text = valid_utf8(name); text != name)
      return make_error(Code::kInvalid,
                        fmt::format("the name of resource '{}' is not valid UTF-8", text));
    if (!std::isfinite(amount) || amount < 0)
      return make_error(Code::kInvalid,
                        fmt::format("resource '{}' must be a number >= 0, not {}", name, amount));
    if (amount > kMaxAmount)
      return make_error(
          Code::kInvalid,
          fmt::format("resource '{}' is {}, more than the maximum of 1e14", name, amount));
    double scaled = amount * kUnit;
    double rounded = std::round(scaled);
    if (std::abs(scaled - rounded) > 1e-3)
      return make_error(
          Code::kInvalid,
          fmt::format("resource '{}' is {}: amounts are multiples of 0.0001", name, amount));
    set.set_units(name, static_cast<int64_t>(rounded));
  }
  return set;
}

ResourceSet ResourceSet::from_proto(const proto::Resources& resources) {
  ResourceSet set;
  for (const auto& [name, units] : resources.units()) {
    if (units > 0 && units <= static_cast<int64_t>(kMaxAmount) * kUnit) set.units_[name] = units;
  }
  return set;
}

void ResourceSet::to_proto(proto::Resources* out) const {
  out->clear_units();
  for (const auto& [name, units] : units_) (*out->mutable_units())[name] = units;
}

double ResourceSet::get(std::string_view name) const {
  return static_cast<double>(units(name)) / kUnit;
}

int64_t ResourceSet::units(std::string_view name) const {
  auto it = units_.find(name);
  return it == units_.end() ? 0 : it->second;
}

void ResourceSet::set_units(const std::string& name, int64_t units) {
  if (units <= 0) {
    units_.erase(name);
  } else {
    units_[name] = units;
  }
}

bool ResourceSet::contains(const ResourceSet& request) const {
  for (const auto& [name, wanted] : request.units_) {
    if (units(name) < wanted) return false;
  }
  return true;
}

void ResourceSet::add(const ResourceSet& other) {
  for (const auto& [name, amount] : other.units_) {
    int64_t& mine = units_[name];
    if (__builtin_add_overflow(mine, amount, &mine)) mine = amount > 0 ? INT64_MAX : INT64_MIN;
    if (mine == 0) units_.erase(name);
  }
}

void ResourceSet::subtract(const ResourceSet& other) {
  RT_CHECK(contains(other));
  subtract_allowing_debt(other);
}

void ResourceSet::subtract_allowing_debt(const ResourceSet& other) {
  for (const auto& [name, amount] : other.units_) {
    int64_t& mine = units_[name];
    mine -= amount;
    if (mine == 0) units_.erase(name);
  }
}

std::string ResourceSet::to_string() const {
  std::string out = "{";
  for (const auto& [name, units] : units_) {
    if (out.size() > 1) out += ", ";
    double amount = static_cast<double>(units) / kUnit;
    out += amount == std::floor(amount) ? fmt::format("'{}': {:.1f}", name, amount)
                                        : fmt::format("'{}': {}", name, amount);
  }
  return out + "}";
}

}  // namespace rt
