#include "tests/sim/group_workload.h"

#include <algorithm>

#include "tests/sim/group_check.h"
#include "tests/sim/workload.h"

namespace rt::sim {
namespace {

constexpr int64_t kActiveUs = 2 * kSecond;

// Makes the program of one seed and runs it.
class Groups {
 public:
  explicit Groups(uint64_t seed)
      : loses_processes_(seed % 4 == 1 || seed % 4 == 3),
        loses_head_(seed % 4 == 2 || seed % 4 == 3),
        breaks_connections_(seed % 4 == 3),
        fills_bundles_(seed % 3 == 1),
        scenario_({.seed = seed, .nodes = 0}) {}

  std::string run() {
    Scenario& s = scenario_;
    build();
    until_us_ = s.now_us() + kActiveUs;
    for (int64_t left = between(1, 8); left > 0; --left) at_any_time([this] { add_group(); });
    for (int64_t left = between(0, 20); left > 0; --left)
      at_any_time([this] { owner().submit(plain_task()); });
    if (s.owners().size() > 1 && rng().chance(0.2))
      at_any_time([this] { scenario_.kill_owner(owner()); });
    plan_faults();
    s.chaos({.worker_kills = loses_processes_ ? 3.0 : 0.0,
             .connection_breaks = breaks_connections_ ? 5.0 : 0.0,
             .head_crashes = loses_head_ ? 1.5 : 0.0,
             .head_down_max_us = 500 * kMs},
            kActiveUs + kSecond);
    s.disk().full = false;
    for (const auto& shape : std::exchange(lost_nodes_, {})) s.add_node(shape);
    wait_settled();
    remove_one_by_one();
    for (SimOwner* owner : s.owners()) owner->exit();
    s.finish();
    return s.summary();
  }

 private:
  using Shape = std::map<std::string, double>;
  struct Added {
    GroupId id;
    // By bundle, what tasks may want of it besides what actors keep.
    std::vector<Shape> for_tasks;
  };

  Rng& rng() { return scenario_.world().rng; }
  int64_t between(int64_t low, int64_t high) { return scenario_.world().between(low, high); }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[rng().below(choices.size())];
  }
  SimOwner& owner() { return *one_of(scenario_.owners()); }
  void after(int64_t delay_us, std::function<void()> run) {
    scenario_.world().clock.after(delay_us, "program", 0, std::move(run));
  }
  void at_any_time(std::function<void()> run) {
    after(between(0, std::max<int64_t>(0, until_us_ - scenario_.now_us())), std::move(run));
  }

  // ---- the cluster

  void build() {
    for (int64_t i = between(1, 5); i > 0; --i) {
      Shape shape{{"CPU", static_cast<double>(between(1, 6))}};
      if (rng().chance(0.4)) shape["GPU"] = static_cast<double>(between(1, 2));
      if (rng().chance(0.4)) shape["slot"] = static_cast<double>(between(1, 4));
      scenario_.add_node(shape);
      shapes_.push_back(shape);
    }
    gpus_in_pieces_ = rng().chance(0.2);
    for (int64_t i = between(1, 3); i > 0; --i) scenario_.add_owner();
    scenario_.wait_ready();
  }

  void plan_faults() {
    if (loses_processes_)
      scenario_.at_random_times(1.5, until_us_, "lose a node", [this] { lose_node(); });
    if (loses_head_)
      scenario_.at_random_times(1.0, until_us_, "disk is full", [this] {
        scenario_.disk().full = true;
        after(between(1, 400 * kMs), [this] { scenario_.disk().full = false; });
      });
    if (loses_head_)
      scenario_.at_random_times(1.0, until_us_, "remove, and crash head",
                                [this] { remove_and_crash(); });
  }

  // Another process than its creator removes a group that waits, and the head is lost at about the
  // time at which the creator would hear of that.
  void remove_and_crash() {
    std::vector<GroupId> waiting;
    for (const auto& [id, group] : scenario_.ledger().groups().all()) {
      if (!group.doomed && !group.uncertain) waiting.push_back(id);
    }
    if (waiting.empty() || !scenario_.world().head) return;
    std::erase_if(waiting, [this](const GroupId& id) {
      const head::Group* group = scenario_.head().core().view().groups().find(id);
      return !group || group->info.state() == proto::GROUP_CREATED;
    });
    if (waiting.empty()) return;
    const GroupId id = one_of(waiting);
    std::vector<SimOwner*> others = scenario_.owners();
    std::erase_if(others, [&](SimOwner* owner) {
      return !owner->joined() || owner->number() == scenario_.ledger().groups().at(id).owner;
    });
    if (others.empty()) return;
    one_of(others)->remove_group(id);
    after(between(0, 5 * kMs), [this] { scenario_.restart_head(between(1, 300 * kMs)); });
  }

  // A node without drivers goes, and one of the same size comes a while later.
  void lose_node() {
    std::vector<SimNode*> candidates = scenario_.nodes();
    for (SimOwner* owner : scenario_.owners()) std::erase(candidates, &owner->node());
    if (candidates.empty()) return;
    SimNode& node = *one_of(candidates);
    Shape shape;
    for (const auto& [name, units] : node.total().all()) shape[name] = node.total().get(name);
    scenario_.kill_node(node);
    lost_nodes_.push_back(shape);
    after(between(0, kSecond), [this] {
      if (lost_nodes_.empty()) return;
      scenario_.add_node(lost_nodes_.back());
      lost_nodes_.pop_back();
    });
  }

  // ---- groups

  Shape bundle() {
    const Shape& node = one_of(shapes_);
    const double cpus = node.at("CPU");
    Shape wanted{{"CPU", one_of<double>({cpus, cpus, cpus - 1, cpus / 2, 1, 1, 0.5})}};
    if (node.contains("GPU") && rng().chance(0.5))
      wanted["GPU"] = gpus_in_pieces_ && rng().chance(0.5) ? 0.5 : between(1, 2);
    if (node.contains("slot") && rng().chance(0.3))
      wanted["slot"] = static_cast<double>(between(1, 2));
    if (wanted.size() > 1 && rng().chance(0.1)) wanted["CPU"] = 0;
    std::erase_if(wanted, [](const auto& item) { return item.second <= 0; });
    if (wanted.empty()) wanted["CPU"] = 1;
    return wanted;
  }

  void add_group() {
    auto added = std::make_shared<Added>();
    GroupPlan plan;
    plan.strategy = static_cast<proto::GroupSpec::Strategy>(rng().below(4));
    for (int64_t i = between(1, 4); i > 0; --i) {
      added->for_tasks.push_back(bundle());
      plan.bundles.push_back(resources(added->for_tasks.back()));
    }
    plan.detached = rng().chance(0.2);
    if (plan.detached || rng().chance(0.2))
      plan.name = "g" + std::to_string(rng().chance(0.1) ? last_name_ : ++last_name_);
    plan.removed_when_back = fills_bundles_ && rng().chance(0.3);
    SimOwner& creator = owner();
    added->id = creator.create_group(plan);
    if (fills_bundles_ && rng().chance(0.5)) {
      fill_with_actors(creator, added);
    } else {
      for (int64_t left = between(0, 2); left > 0; --left) add_actor(creator, added);
    }
    for (int64_t left = between(0, 10); left > 0; --left) {
      auto submit = [this, added, made_by = &creator] {
        SimOwner& by = made_by->alive() && rng().chance(0.7) ? *made_by : owner();
        by.submit(group_task(*added));
      };
      rng().chance(0.5) ? submit() : at_any_time(submit);
    }
    if (!rng().chance(0.5)) return;
    auto remove = [this, id = added->id, made_by = &creator] {
      SimOwner& by = made_by->alive() && rng().chance(0.7) ? *made_by : owner();
      by.remove_group(id);
    };
    rng().chance(0.3) ? after(between(0, 20 * kMs), remove) : at_any_time(remove);
  }

  Shape part_of(const Shape& bundle) {
    Shape wanted;
    auto cpus = bundle.find("CPU");
    if (cpus != bundle.end() && rng().chance(0.9))
      wanted["CPU"] = rng().chance(0.5) ? cpus->second : std::min(cpus->second, 0.5);
    auto gpus = bundle.find("GPU");
    if (gpus != bundle.end() && rng().chance(0.5))
      wanted["GPU"] = rng().chance(0.5) ? gpus->second : std::min(gpus->second, 0.25);
    auto slots = bundle.find("slot");
    if (slots != bundle.end() && rng().chance(0.3)) wanted["slot"] = 1;
    return wanted;
  }

  int64_t duration() {
    const int64_t us = rng().chance(0.5)   ? between(5, 1000)
                       : rng().chance(0.8) ? between(1000, 100'000)
                                           : between(100'000, kSecond);
    alone_us_ += us;
    return us;
  }

  TaskPlan task_with(const Shape& wanted) {
    TaskPlan plan;
    plan.function = static_cast<int>(rng().below(4));
    plan.resources = resources(wanted);
    plan.duration_us = duration();
    plan.max_retries = -1;
    return plan;
  }

  TaskPlan group_task(const Added& group) {
    const auto index = rng().below(group.for_tasks.size());
    TaskPlan plan = task_with(part_of(group.for_tasks[index]));
    plan.group = group.id;
    plan.bundle = rng().chance(0.6) ? static_cast<int>(index) : -1;
    const uint64_t kind = rng().below(100);
    if (kind < 20) {
      plan.blocked_us = between(1000, 200'000);
      alone_us_ += plan.blocked_us;
    } else if (kind < 50) {
      plan.captures = rng().chance(0.7);
      plan.child = std::make_shared<TaskPlan>(child_of(group, plan.captures));
    }
    return plan;
  }

  // Only of CPUs, because these are lent while its parent waits for it.
  TaskPlan child_of(const Added& group, bool captured) {
    const auto index = rng().below(group.for_tasks.size());
    const Shape& bundle = group.for_tasks[index];
    Shape wanted;
    if (auto cpus = bundle.find("CPU"); cpus != bundle.end())
      wanted["CPU"] = rng().chance(0.5) ? cpus->second : std::min(cpus->second, 0.5);
    if (captured && rng().chance(0.8)) return task_with(wanted);
    // Room besides the groups may never be free, so that a child there needs none.
    if (rng().chance(0.5)) wanted.clear();
    TaskPlan plan = task_with(wanted);
    plan.placed_explicitly = true;
    if (wanted.empty()) return plan;
    plan.group = group.id;
    plan.bundle = rng().chance(0.5) ? static_cast<int>(index) : -1;
    return plan;
  }

  void add_actor(SimOwner& creator, const std::shared_ptr<Added>& group) {
    const auto index = rng().below(group->for_tasks.size());
    Shape& bundle = group->for_tasks[index];
    ActorPlan plan;
    plan.group = group->id;
    plan.captures = rng().chance(0.3);
    plan.max_restarts = -1;
    auto cpus = bundle.find("CPU");
    if (cpus != bundle.end() && cpus->second >= 1 && rng().chance(0.5)) {
      plan.placement = plan.held = resources({{"CPU", 0.5}});
      plan.bundle = static_cast<int>(index);
      cpus->second -= 0.5;
    } else if (cpus != bundle.end()) {
      plan.placement = resources({{"CPU", std::min(cpus->second, 0.5)}});
      plan.bundle = rng().chance(0.5) ? static_cast<int>(index) : -1;
    }
    start_actor(creator, group, plan);
  }

  // Actors that hold as much as the smallest bundle has, so that the head has to look for one that
  // has room; tasks get what they may leave of each.
  void fill_with_actors(SimOwner& creator, const std::shared_ptr<Added>& group) {
    double least = 0;
    for (const Shape& bundle : group->for_tasks) {
      auto cpus = bundle.find("CPU");
      if (cpus == bundle.end()) return;
      least = least == 0 ? cpus->second : std::min(least, cpus->second);
    }
    const int64_t actors = between(1, std::ssize(group->for_tasks));
    for (Shape& bundle : group->for_tasks) {
      double& cpus = bundle.at("CPU");
      for (int64_t left = actors; left > 0 && cpus >= least; --left) cpus -= least;
    }
    ActorPlan plan;
    plan.group = group->id;
    plan.max_restarts = -1;
    plan.placement = plan.held = resources({{"CPU", least}});
    for (int64_t left = actors; left > 0; --left) start_actor(creator, group, plan);
  }

  void start_actor(SimOwner& creator, const std::shared_ptr<Added>& group, const ActorPlan& plan) {
    const ActorId id = creator.create_actor(plan);
    for (int64_t i = between(0, 3); i > 0; --i) {
      at_any_time([this, by = &creator, id, captures = plan.captures, group] {
        if (!by->alive()) return;
        TaskPlan call;
        call.duration_us = duration();
        call.max_retries = -1;
        if (captures && rng().chance(0.5))
          call.child = std::make_shared<TaskPlan>(child_of(*group, captures));
        by->call(id, call);
      });
    }
  }

  TaskPlan plain_task() {
    TaskPlan plan = task_with({{"CPU", one_of<double>({0.25, 0.5, 1, 1})}});
    if (rng().chance(0.2)) plan.blocked_us = between(1000, 200'000);
    if (rng().chance(0.2)) plan.child = std::make_shared<TaskPlan>(task_with({{"CPU", 0.5}}));
    if (rng().chance(0.1)) plan.strategy = proto::SPREAD;
    alone_us_ += plan.blocked_us;
    return plan;
  }

  // ---- the end

  // Checked only from time to time, because groups_unsettled() looks at everything.
  void wait_settled() {
    const int64_t limit = scenario_.now_us() + 4 * alone_us_ + 60 * kSecond;
    for (;;) {
      const std::string why = groups_unsettled(scenario_, gpus_in_pieces_);
      if (why.empty()) return;
      if (scenario_.now_us() > limit) violation("the groups do not settle: " + why);
      scenario_.run_for(50 * kMs);
    }
  }

  // Removes the groups that are created, so that those that wait for their room follow, and those
  // that wait for more than the cluster has last.
  void remove_one_by_one() {
    const int64_t limit = scenario_.now_us() + 4 * alone_us_ + 600 * kSecond;
    for (;;) {
      if (scenario_.now_us() > limit) violation("groups are there still after their removal");
      std::vector<GroupId> created, left;
      const proto::ListGroupsReply list = scenario_.head().core().view().list_groups();
      for (const proto::GroupInfo& info : list.groups()) {
        if (info.state() == proto::GROUP_REMOVED) continue;
        left.push_back(GroupId::from_binary(info.spec().group_id()));
        if (info.state() == proto::GROUP_CREATED) created.push_back(left.back());
      }
      if (left.empty()) break;
      owner().remove_group(one_of(created.empty() ? left : created));
      scenario_.run_for(kMs);
      wait_settled();
    }
    scenario_.run_until(
        "all tasks besides those of removed groups end",
        [this] {
          const auto open = scenario_.ledger().open();
          return std::all_of(open.begin(), open.end(), [this](const TaskId& id) {
            const TaskRecord& task = scenario_.ledger().task(id);
            const GroupLedger& groups = scenario_.ledger().groups();
            return scenario_.ledger().doomed(task) ||
                   (!task.plan.group.is_nil() && groups.at(task.plan.group).uncertain);
          });
        },
        4 * alone_us_ + 60 * kSecond);
  }

  const bool loses_processes_, loses_head_, breaks_connections_, fills_bundles_;
  Scenario scenario_;
  std::vector<Shape> shapes_, lost_nodes_;
  bool gpus_in_pieces_ = false;
  int last_name_ = 0;
  int64_t until_us_ = 0;  // when the program has submitted everything
  int64_t alone_us_ = 0;  // how long everything takes when one task follows the other
};

}  // namespace

std::string run_groups(uint64_t seed) { return Groups(seed).run(); }

}  // namespace rt::sim
