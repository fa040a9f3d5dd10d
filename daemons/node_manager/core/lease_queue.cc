#include "daemons/node_manager/core/lease_queue.h"

#include <algorithm>
#include <tuple>

namespace rt::node {

Demand* LeaseQueue::find(OwnerId owner, uint64_t class_id) {
  auto it = demands_.find({owner, class_id});
  return it == demands_.end() ? nullptr : &it->second;
}

Demand* LeaseQueue::find_or_add(OwnerId owner, uint64_t class_id, size_t max_classes) {
  if (Demand* known = find(owner, class_id)) return known;
  auto from = demands_.lower_bound({owner, 0}), to = demands_.lower_bound({owner + 1, 0});
  if (static_cast<size_t>(std::distance(from, to)) >= max_classes) {
    std::erase_if(demands_, [owner](const auto& item) {
      return item.first.first == owner && item.second.want == 0 && item.second.leases == 0;
    });
    from = demands_.lower_bound({owner, 0}), to = demands_.lower_bound({owner + 1, 0});
    if (static_cast<size_t>(std::distance(from, to)) >= max_classes) return nullptr;
  }
  Demand& added = demands_[{owner, class_id}];
  added.owner = owner;
  added.class_id = class_id;
  return &added;
}

void LeaseQueue::set_want(Demand& demand, int want, Now now) {
  if (demand.want == 0 && want > 0) demand.waiting_since_us = now.steady_us;
  demand.want = want;
  Key key{demand.owner, demand.class_id};
  if (want > 0) {
    waiting_.insert(key);
  } else {
    waiting_.erase(key);
    demand.infeasible = {};
  }
}

uint64_t LeaseQueue::number_redirect(Demand& demand, int leases) {
  demand.unacknowledged_answers.emplace_back(next_answer_, leases);
  return next_answer_++;
}

void LeaseQueue::acknowledge_answers(OwnerId owner, uint64_t answer) {
  for (auto it = demands_.lower_bound({owner, 0});
       it != demands_.end() && it->first.first == owner;) {
    Demand& demand = (it++)->second;
    while (!demand.unacknowledged_answers.empty() &&
           demand.unacknowledged_answers.front().first <= answer)
      demand.unacknowledged_answers.pop_front();
    erase_if_unused(demand);
  }
}

void LeaseQueue::apply_demand(Demand& demand, int want, uint64_t last_answer, Now now) {
  while (!demand.unacknowledged_answers.empty() &&
         demand.unacknowledged_answers.front().first <= last_answer)
    demand.unacknowledged_answers.pop_front();
  for (const auto& [number, leases] : demand.unacknowledged_answers) want -= leases;
  set_want(demand, std::max(want, 0), now);
}

void LeaseQueue::erase_if_unused(Demand& demand) {
  if (demand.want == 0 && demand.leases == 0 && demand.unacknowledged_answers.empty())
    demands_.erase({demand.owner, demand.class_id});
}

void LeaseQueue::erase_owner_demands(OwnerId owner) {
  auto from = demands_.lower_bound({owner, 0}), to = demands_.lower_bound({owner + 1, 0});
  for (auto it = from; it != to; ++it) {
    RT_CHECK(it->second.leases == 0);
    waiting_.erase(it->first);
  }
  demands_.erase(from, to);
}

Lease& LeaseQueue::add_lease(Demand& demand, const WorkerId& worker, Now now) {
  Lease& lease = leases_[next_answer_];
  lease.id = next_answer_++;
  demand.unacknowledged_answers.emplace_back(lease.id, 1);
  lease.owner = demand.owner;
  lease.class_id = demand.class_id;
  lease.worker = worker;
  ++demand.leases;
  ++owner_leases_[demand.owner];
  set_want(demand, demand.want - 1, now);
  demand.waiting_since_us = now.steady_us;
  return lease;
}

Lease* LeaseQueue::find_lease(LeaseId id) {
  auto it = leases_.find(id);
  return it == leases_.end() ? nullptr : &it->second;
}

void LeaseQueue::remove_lease(LeaseId id, Now now) {
  auto it = leases_.find(id);
  RT_CHECK(it != leases_.end());
  OwnerId owner = it->second.owner;
  Demand* demand = find(owner, it->second.class_id);
  leases_.erase(it);
  if (--owner_leases_[owner] == 0) owner_leases_.erase(owner);
  RT_CHECK(demand && demand->leases > 0);
  --demand->leases;
  // The demand was being served until now, so demands that waited meanwhile come first.
  demand->waiting_since_us = now.steady_us;
  erase_if_unused(*demand);
}

std::vector<LeaseId> LeaseQueue::leases_of(OwnerId owner) const {
  std::vector<LeaseId> ids;
  if (!owner_leases_.contains(owner)) return ids;
  for (const auto& [id, lease] : leases_) {
    if (lease.owner == owner) ids.push_back(id);
  }
  return ids;
}

std::vector<Demand*> LeaseQueue::fair_order(int64_t starved_before_us) {
  // (-1 if starved, otherwise leases of the owner; start of the wait; demand)
  std::vector<std::tuple<int, int64_t, Demand*>> ranked;
  ranked.reserve(waiting_.size());
  for (const Key& key : waiting_) {
    Demand& demand = demands_.at(key);
    auto held = owner_leases_.find(demand.owner);
    int rank = demand.waiting_since_us < starved_before_us ? -1
               : held == owner_leases_.end()               ? 0
                                                           : held->second;
    ranked.emplace_back(rank, demand.waiting_since_us, &demand);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<Demand*> order;
  order.reserve(ranked.size());
  for (const auto& item : ranked) order.push_back(std::get<2>(item));
  return order;
}

void LeaseQueue::check_invariants() const {
  std::map<Key, int> leases;
  std::map<OwnerId, int> owners;
  for (const auto& [id, lease] : leases_) {
    ++leases[{lease.owner, lease.class_id}];
    ++owners[lease.owner];
  }
  RT_CHECK(owners == owner_leases_);
  for (const auto& [key, demand] : demands_) {
    RT_CHECK(demand.want >= 0 && demand.leases >= 0);
    RT_CHECK(demand.want > 0 || demand.leases > 0 || !demand.unacknowledged_answers.empty());
    RT_CHECK((demand.want > 0) == waiting_.contains(key));
    auto it = leases.find(key);
    RT_CHECK(demand.leases == (it == leases.end() ? 0 : it->second));
    if (it != leases.end()) leases.erase(it);
  }
  RT_CHECK(leases.empty());
}

std::pair<int64_t, int64_t> LeaseQueue::waiting_tasks() const {
  int64_t waiting = 0, infeasible = 0;
  for (const auto& [key, demand] : demands_) {
    if (demand.want > 0)
      (demand.infeasible.since_us >= 0 ? infeasible : waiting) +=
          std::max<int64_t>(demand.want, demand.backlog);
  }
  return {waiting, infeasible};
}

}  // namespace rt::node
