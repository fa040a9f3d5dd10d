#include "common/scheduling/bundle_search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace rt::scheduling {
namespace {

// A new node is judged by how many of the next bundles it could take; beyond this many kinds of
// them the rest does not count.
constexpr size_t kKindsAhead = 8;
// An exact search takes so many bundles, and so many steps, before it gives up.
constexpr size_t kExactBundles = 12;
constexpr int kExactSteps = 5'000;

template <class Better>
NodeSlot best_of(const NodeMask& candidates, const Better& better) {
  NodeSlot best = kNoNode;
  for (NodeSlot node = candidates.first(); node != kNoNode; node = candidates.first(node + 1)) {
    if (best == kNoNode || better(node, best)) best = node;
  }
  return best;
}

}  // namespace

BundleSearch::BundleSearch(const BundleSet& set, const BundleNodes& kept, const Nodes& nodes,
                           Amount amount, const RefusedGpus& refused)
    : set_(set),
      nodes_(nodes),
      gpu_nodes_(nodes.with_any("GPU")),
      bundles_on_(nodes.slots(), 0),
      kept_(kept) {
  kept_.resize(set.size(), kNoNode);
  for (const BundleSet::Kind& kind : set.kinds) {
    Need need;
    if (const int64_t units = kind.resources.units("GPU"); units > 0) need.gpus = {units};
    need.matching = nodes.matching(kind.selector);
    for (const auto& [name, units] : kind.resources.all()) {
      auto known = std::find(resources_.begin(), resources_.end(), name);
      need.amounts.emplace_back(known - resources_.begin(), units);
      if (known != resources_.end()) continue;
      resources_.push_back(name);
      left_.push_back(nodes.amounts(name, amount));
    }
    needs_.push_back(std::move(need));
  }
  for (size_t bundle = 0; bundle < set.size(); ++bundle) {
    const NodeSlot node = kept_[bundle];
    if (node == kNoNode) {
      wanting_.push_back(bundle);
      continue;
    }
    ++bundles_on_[static_cast<size_t>(node)];
    if (amount != Amount::kTotal) continue;
    for (const auto& [resource, units] : need(bundle).amounts)
      left_[resource][static_cast<size_t>(node)] -= units;
  }
  result_ = kept_;
  load_ = nodes.utilisations({});
  lay_out_gpus(refused);
  order();
}

void BundleSearch::lay_out_gpus(const RefusedGpus& refused) {
  const bool parts = std::any_of(needs_.begin(), needs_.end(), [](const Need& need) {
    return need.needs_gpu() && need.gpus.front() % ResourceSet::kUnit != 0;
  });
  if (!parts && refused.empty()) return;
  auto gpu = std::find(resources_.begin(), resources_.end(), "GPU");
  if (gpu == resources_.end()) return;
  const std::vector<int64_t>& left = left_[static_cast<size_t>(gpu - resources_.begin())];
  std::vector<GpuDemands> stay(nodes_.slots());
  for (size_t bundle = 0; bundle < kept_.size(); ++bundle) {
    if (kept_[bundle] == kNoNode || !need(bundle).needs_gpu()) continue;
    stay[static_cast<size_t>(kept_[bundle])].push_back(need(bundle).gpus.front());
  }
  gpus_.resize(nodes_.slots());
  for (NodeSlot node = gpu_nodes_.first(); node != kNoNode; node = gpu_nodes_.first(node + 1)) {
    const auto slot = static_cast<size_t>(node);
    const int64_t total = nodes_.total(node).units("GPU");
    // A node with 1.5 GPUs has two devices, and the amount keeps the last half from being used.
    const int64_t beyond = (ResourceSet::kUnit - total % ResourceSet::kUnit) % ResourceSet::kUnit;
    GpuDevices devices(left[slot] + beyond);
    // If nothing but the bundles that stay is on the node, their devices are known, too. The
    // bundles do fit; if they do not in this order, the devices are as unknown as those that others
    // use.
    if (left[slot] == total - std::accumulate(stay[slot].begin(), stay[slot].end(), int64_t{0})) {
      std::sort(stay[slot].begin(), stay[slot].end(), std::greater<>());
      GpuDevices all(total + beyond);
      if (all.take_all(stay[slot])) devices = all;
    }
    auto known = refused.find(nodes_.id(node));
    gpus_[slot] = GpuRoom(std::move(devices), known == refused.end() ? nullptr : &known->second);
  }
}

// Bundles with few nodes to choose from come first, then large ones.
void BundleSearch::order() {
  if (set_.kinds.size() == 1) return;
  std::vector<std::tuple<int, double>> rank;
  for (size_t kind = 0; kind < needs_.size(); ++kind) {
    double share = 0;
    for (const auto& [resource, units] : needs_[kind].amounts) {
      const auto& left = left_[resource];
      const int64_t most = left.empty() ? 0 : *std::max_element(left.begin(), left.end());
      share += static_cast<double>(units) / static_cast<double>(std::max<int64_t>(most, 1));
    }
    rank.emplace_back(fitting(kind).size(), -share);
  }
  std::stable_sort(wanting_.begin(), wanting_.end(), [&](size_t a, size_t b) {
    const size_t of_a = set_.kind_of[a], of_b = set_.kind_of[b];
    return std::tie(rank[of_a], of_a) < std::tie(rank[of_b], of_b);
  });
}

bool BundleSearch::fits(const Need& need, NodeSlot node) const {
  const bool enough =
      std::all_of(need.amounts.begin(), need.amounts.end(), [&](const auto& amount) {
        return left_[amount.first][static_cast<size_t>(node)] >= amount.second;
      });
  return enough && (gpus_.empty() || gpus_[static_cast<size_t>(node)].fits(need.gpus));
}

NodeMask BundleSearch::fitting(size_t kind) const {
  NodeMask found = needs_[kind].matching;
  for (NodeSlot node = found.first(); node != kNoNode; node = found.first(node + 1)) {
    if (!fits(needs_[kind], node)) found.remove(node);
  }
  return found;
}

BundleSearch::Need BundleSearch::sum_of_wanting() const {
  Need sum;
  std::vector<int64_t> units(resources_.size(), 0);
  sum.matching = nodes_.all();
  for (size_t bundle : wanting_) {
    for (const auto& [resource, wanted] : need(bundle).amounts) units[resource] += wanted;
    sum.matching &= need(bundle).matching;
    sum.gpus.insert(sum.gpus.end(), need(bundle).gpus.begin(), need(bundle).gpus.end());
  }
  std::sort(sum.gpus.begin(), sum.gpus.end(), std::greater<>());
  for (size_t resource = 0; resource < units.size(); ++resource) {
    if (units[resource] > 0) sum.amounts.emplace_back(resource, units[resource]);
  }
  return sum;
}

NodeMask BundleSearch::kept_together() const {
  NodeMask found = nodes_.all();
  for (NodeSlot node : kept_) {
    if (node == kNoNode) continue;
    NodeMask only(nodes_.slots());
    only.add(node);
    found &= only;
  }
  return found;
}

std::vector<std::pair<std::string, int64_t>> BundleSearch::lacking(size_t kind,
                                                                   NodeSlot node) const {
  std::vector<std::pair<std::string, int64_t>> missing;
  for (const auto& [resource, units] : needs_[kind].amounts) {
    const int64_t left = std::max<int64_t>(left_[resource][static_cast<size_t>(node)], 0);
    if (left < units) missing.emplace_back(resources_[resource], units - left);
  }
  return missing;
}

std::vector<std::pair<std::string, int64_t>> BundleSearch::lacking_for_all(NodeSlot node) const {
  std::vector<std::pair<std::string, int64_t>> missing;
  for (const auto& [resource, units] : sum_of_wanting().amounts) {
    const int64_t left = std::max<int64_t>(left_[resource][static_cast<size_t>(node)], 0);
    if (left < units) missing.emplace_back(resources_[resource], units - left);
  }
  return missing;
}

void BundleSearch::put(size_t bundle, NodeSlot node) {
  result_[bundle] = node;
  ++bundles_on_[static_cast<size_t>(node)];
  for (const auto& [resource, units] : need(bundle).amounts)
    left_[resource][static_cast<size_t>(node)] -= units;
  if (!gpus_.empty() && need(bundle).needs_gpu())
    gpus_[static_cast<size_t>(node)].put(need(bundle).gpus.front());
}

void BundleSearch::take_back(size_t bundle) {
  const auto node = static_cast<size_t>(result_[bundle]);
  result_[bundle] = kNoNode;
  --bundles_on_[node];
  for (const auto& [resource, units] : need(bundle).amounts) left_[resource][node] += units;
  if (!gpus_.empty() && need(bundle).needs_gpu()) gpus_[node].take_back(need(bundle).gpus.front());
}

void BundleSearch::reset() {
  for (size_t bundle : wanting_) {
    if (result_[bundle] != kNoNode) take_back(bundle);
  }
}

std::optional<BundleNodes> BundleSearch::run(const NodeMask& eligible) {
  bool placed = wanting_.empty();
  if (!placed) {
    switch (set_.strategy) {
      case proto::GroupSpec::SPREAD: placed = spread(eligible) || exact(eligible); break;
      case proto::GroupSpec::STRICT_PACK: placed = strict_pack(eligible); break;
      case proto::GroupSpec::STRICT_SPREAD: placed = strict_spread(eligible); break;
      default: placed = pack(eligible) || exact(eligible);
    }
  }
  if (!placed) {
    reset();
    return std::nullopt;
  }
  return result_;
}

int64_t BundleSearch::capacity(size_t from, NodeSlot node) const {
  const auto slot = static_cast<size_t>(node);
  std::vector<int64_t> left(resources_.size());
  for (size_t resource = 0; resource < left.size(); ++resource)
    left[resource] = left_[resource][slot];
  GpuDevices devices = gpus_.empty() ? GpuDevices() : gpus_[slot].left();
  int64_t taken = 0;
  size_t kinds = 0;
  for (size_t at = from; at < wanting_.size() && kinds < kKindsAhead; ++kinds) {
    const size_t kind = set_.kind_of[wanting_[at]];
    size_t end = at;
    while (end < wanting_.size() && set_.kind_of[wanting_[end]] == kind) ++end;
    auto most = static_cast<int64_t>(end - at);
    at = end;
    if (!needs_[kind].matching.contains(node)) continue;
    for (const auto& [resource, units] : needs_[kind].amounts)
      most = std::min(most, left[resource] / units);
    if (!gpus_.empty() && needs_[kind].needs_gpu()) {
      const int64_t units = needs_[kind].gpus.front(), amount = most;
      for (most = 0; most < amount && devices.fits(units); ++most) devices.take(units);
    }
    if (most <= 0) continue;
    for (const auto& [resource, units] : needs_[kind].amounts) left[resource] -= most * units;
    taken += most;
  }
  return taken;
}

// Chooses the node that takes most of what is left. Among equals it prefers nodes without GPUs when
// no GPU is needed, then the fullest, so that whole nodes stay free.
NodeSlot BundleSearch::new_node(size_t at, const NodeMask& candidates) const {
  const bool spare_gpus = !need(wanting_[at]).needs_gpu();
  const bool last = at + 1 == wanting_.size();
  NodeSlot best = kNoNode;
  std::tuple<int64_t, bool, float> best_worth;
  for (NodeSlot node = candidates.first(); node != kNoNode; node = candidates.first(node + 1)) {
    std::tuple<int64_t, bool, float> worth{last ? 1 : capacity(at, node),
                                           !(spare_gpus && gpu_nodes_.contains(node)),
                                           load_[static_cast<size_t>(node)]};
    if (best != kNoNode && worth <= best_worth) continue;
    best = node;
    best_worth = worth;
  }
  return best;
}

bool BundleSearch::pack(const NodeMask& eligible) {
  std::vector<NodeSlot> used;
  for (NodeSlot node : kept_) {
    if (node != kNoNode && eligible.contains(node) &&
        std::find(used.begin(), used.end(), node) == used.end())
      used.push_back(node);
  }
  size_t first_used = 0, kind_before = set_.kinds.size();
  for (size_t at = 0; at < wanting_.size(); ++at) {
    const size_t bundle = wanting_[at], kind = set_.kind_of[bundle];
    const Need& wanted = need(bundle);
    // Nodes that had no room for the last bundle have none for an equal one.
    if (kind != kind_before) first_used = 0;
    kind_before = kind;
    while (first_used < used.size() &&
           !(wanted.matching.contains(used[first_used]) && fits(wanted, used[first_used])))
      ++first_used;
    if (first_used == used.size()) {
      const NodeSlot node = new_node(at, fitting(kind) & eligible);
      if (node == kNoNode) return false;
      used.push_back(node);
    }
    put(bundle, used[first_used]);
  }
  return true;
}

bool BundleSearch::spread(const NodeMask& eligible) {
  reset();
  for (size_t bundle : wanting_) {
    const bool spare_gpus = !need(bundle).needs_gpu();
    auto cost = [&](NodeSlot node) {
      const auto slot = static_cast<size_t>(node);
      return std::tuple{bundles_on_[slot], spare_gpus && gpu_nodes_.contains(node), load_[slot]};
    };
    const NodeSlot node =
        best_of(fitting(set_.kind_of[bundle]) & eligible,
                [&](NodeSlot candidate, NodeSlot best) { return cost(candidate) < cost(best); });
    if (node == kNoNode) return false;
    put(bundle, node);
  }
  return true;
}

bool BundleSearch::strict_pack(const NodeMask& eligible) {
  const Need sum = sum_of_wanting();
  NodeMask candidates = sum.matching & eligible & kept_together();
  for (NodeSlot node = candidates.first(); node != kNoNode; node = candidates.first(node + 1)) {
    if (!fits(sum, node)) candidates.remove(node);
  }
  const NodeSlot target = set_.soft_target ? nodes_.find(*set_.soft_target) : kNoNode;
  auto cost = [&](NodeSlot node) {
    return std::tuple{node != target, !sum.needs_gpu() && gpu_nodes_.contains(node),
                      -load_[static_cast<size_t>(node)]};
  };
  const NodeSlot node = best_of(
      candidates, [&](NodeSlot candidate, NodeSlot best) { return cost(candidate) < cost(best); });
  if (node == kNoNode) return false;
  for (size_t bundle : wanting_) result_[bundle] = node;
  return true;
}

// Matches bundles with nodes: a bundle that finds no free node makes others move.
bool BundleSearch::strict_spread(const NodeMask& eligible) {
  std::vector<NodeMask> candidates;
  NodeMask unused = eligible;
  for (NodeSlot node : kept_) {
    if (node != kNoNode) unused.remove(node);
  }
  for (size_t kind = 0; kind < needs_.size(); ++kind) candidates.push_back(fitting(kind) & unused);
  constexpr size_t kNobody = ~size_t{0};
  std::vector<size_t> holder(nodes_.slots(), kNobody);
  auto place = [&](size_t bundle, NodeSlot node) {
    holder[static_cast<size_t>(node)] = bundle;
    unused.remove(node);
    result_[bundle] = node;
  };
  NodeMask seen;
  std::function<bool(size_t)> make_room = [&](size_t bundle) {
    const NodeMask& possible = candidates[set_.kind_of[bundle]];
    const bool spare_gpus = !need(bundle).needs_gpu();
    auto cost = [&](NodeSlot node) {
      return std::tuple{spare_gpus && gpu_nodes_.contains(node), load_[static_cast<size_t>(node)]};
    };
    const NodeSlot free = best_of(possible & unused, [&](NodeSlot candidate, NodeSlot best) {
      return cost(candidate) < cost(best);
    });
    if (free != kNoNode) return place(bundle, free), true;
    for (NodeSlot node = possible.first(); node != kNoNode; node = possible.first(node + 1)) {
      if (seen.contains(node)) continue;
      seen.add(node);
      if (!make_room(holder[static_cast<size_t>(node)])) continue;
      return place(bundle, node), true;
    }
    return false;
  };
  for (size_t bundle : wanting_) {
    seen = NodeMask(nodes_.slots());
    if (make_room(bundle)) continue;
    for (size_t other : wanting_) result_[other] = kNoNode;
    return false;
  }
  return true;
}

bool BundleSearch::same_left(NodeSlot a, NodeSlot b, const Need& need) const {
  if (need.matching.contains(a) != need.matching.contains(b) ||
      bundles_on_[static_cast<size_t>(a)] != bundles_on_[static_cast<size_t>(b)])
    return false;
  if (!gpus_.empty() && !gpus_[static_cast<size_t>(a)].same_left(gpus_[static_cast<size_t>(b)]))
    return false;
  return std::all_of(left_.begin(), left_.end(), [&](const auto& left) {
    return left[static_cast<size_t>(a)] == left[static_cast<size_t>(b)];
  });
}

bool BundleSearch::exact_from(size_t at, const NodeMask& eligible, int& budget) {
  if (at == wanting_.size()) return true;
  const size_t bundle = wanting_[at];
  const Need& wanted = need(bundle);
  const NodeMask candidates = wanted.matching & eligible;
  // Equal bundles are laid out in the order of the nodes, because their permutations are equal.
  const bool as_before = at > 0 && set_.kind_of[wanting_[at - 1]] == set_.kind_of[bundle];
  NodeSlot before = kNoNode;
  for (NodeSlot node = candidates.first(as_before ? result_[wanting_[at - 1]] : 0); node != kNoNode;
       node = candidates.first(node + 1)) {
    if (--budget <= 0) return false;
    if (!fits(wanted, node)) continue;
    if (set_.kinds.size() == 1 && before != kNoNode && same_left(before, node, wanted)) continue;
    put(bundle, node);
    if (exact_from(at + 1, eligible, budget)) return true;
    take_back(bundle);
    before = node;
  }
  return false;
}

bool BundleSearch::exact(const NodeMask& eligible) {
  reset();
  if (wanting_.size() < 2 || wanting_.size() > kExactBundles) return false;
  const Need sum = sum_of_wanting();
  for (const auto& [resource, units] : sum.amounts) {
    int64_t left = 0;
    for (NodeSlot node = eligible.first(); node != kNoNode; node = eligible.first(node + 1))
      left += std::max<int64_t>(left_[resource][static_cast<size_t>(node)], 0);
    if (left < units) return false;
  }
  int budget = kExactSteps;
  return exact_from(0, eligible, budget);
}

}  // namespace rt::scheduling
