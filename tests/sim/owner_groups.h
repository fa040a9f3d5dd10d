// The placement groups of a driver: models worker/service/groups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/world.h"
#include "worker/core/group_view.h"
#include "worker/core/submitter.h"

namespace rt::sim {

class OwnerGroups {
 public:
  using WithChannel = std::function<void(Result<ChannelPtr>)>;
  struct Environment {
    uint64_t owner = 0;  // number of the process
    std::function<void(WithChannel)> with_head;
    std::function<void(int64_t delay_us, const char* what, std::function<void()> run)> after;
    // Runs an event of the submitter.
    std::function<void(std::function<void(worker::Submitter&)>)> drive;
  };

  OwnerGroups(World& world, Environment environment)
      : world_(world), environment_(std::move(environment)) {}

  worker::GroupView& view() { return view_; }
  // `spec` has its id. The head learns of it a moment later.
  void create(const proto::GroupSpec& spec);
  void remove(const GroupId& id);
  // News of the head.
  void update(const proto::GroupInfo& info);
  // There is a new connection to the head: repeats what only the old one knew.
  void head_is_back();
  bool need_head() const { return !view_.watched().empty(); }

  // The template for tasks in the group, made at its first use.
  worker::Template* function(const std::string& key, const proto::TaskTemplate& spec,
                             worker::Submitter& submitter);
  void task_submitted(const worker::Template* function);
  void task_ended(const worker::Template* function);

 private:
  struct Own {
    proto::RegisterGroupRequest request;
    bool answered = false;
  };
  struct Function {
    std::unique_ptr<worker::Template> made;
    GroupId group;
    int64_t open = 0;  // tasks that have not ended
  };

  void send_registration(const GroupId& id);
  void refused(const GroupId& id, const Error& why);
  void send_removal(const GroupId& id, bool held);
  void subscribe(const std::vector<GroupId>& ids);
  void remove_some(const std::vector<GroupId>& ids);
  void ask_later(std::vector<GroupId> ids);
  void ask(const GroupId& id);
  void changed(const GroupId& id);
  void forget_if_unused(const GroupId& id);
  // Frees the templates of removed groups that no task uses.
  void sweep();
  void sweep_later();

  World& world_;
  Environment environment_;
  worker::GroupView view_;
  std::map<GroupId, int64_t> newest_;  // the highest version that the head has told of each
  std::map<GroupId, Own> own_;         // to be registered again when the head may have lost them
  std::map<std::string, Function> functions_;
  std::map<const worker::Template*, std::string> keys_;  // the keys of functions_
  bool sweep_planned_ = false;
  int64_t connected_us_ = 0;  // when the connection to the head was made
};

}  // namespace rt::sim
