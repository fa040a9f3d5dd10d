#include "tests/sim/owner_groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/owner_head.h"
#include "tests/sim/sim_head.h"

namespace rt::sim {
namespace {
constexpr int64_t kAgainUs = 50'000, kRegistrationUs = 1'000'000, kSweepUs = 20'000;
// How long a program waits before it repeats a removal that the head could not write down.
constexpr int64_t kRemoveAgainUs = 300'000;
constexpr int64_t kCallTimeoutUs = 60'000'000, kAskTimeoutUs = 10'000'000;
}  // namespace

// ---- registration and removal

void OwnerGroups::create(const proto::GroupSpec& spec) {
  const GroupId id = GroupId::from_binary(spec.group_id());
  view_.watch_own(id);
  *own_[id].request.mutable_spec() = spec;
  send_registration(id);
}

void OwnerGroups::send_registration(const GroupId& id) {
  environment_.with_head([this, id](Result<ChannelPtr> channel) {
    auto own = own_.find(id);
    if (own == own_.end()) return;
    if (!channel) return refused(id, channel.error());
    (*channel)->call<proto::Empty>(
        "register group",
        [request = own->second.request](Channel& at, Channel::Answer<proto::Empty> answer) {
          head_at(at).register_group(at, request, std::move(answer));
        },
        [this, id](Result<proto::Empty> reply) {
          auto own = own_.find(id);
          if (!reply && may_recover(reply.error().code)) {
            if (own != own_.end()) send_registration(id);
            return;
          }
          if (own != own_.end()) own->second.answered = true;
          if (reply) return world_.ledger.groups().registered(id);
          refused(id, reply.error());
        },
        kCallTimeoutUs);
  });
}

void OwnerGroups::refused(const GroupId& id, const Error& why) {
  own_.erase(id);
  world_.ledger.groups().doom(id);
  if (view_.lost(id, why.message)) changed(id);
}

void OwnerGroups::remove(const GroupId& id) {
  world_.ledger.groups().removal_sent(id, environment_.owner);
  own_.erase(id);
  // Kept until the head has answered, because it may still tell of the group as it was.
  const bool held = view_.watches(id);
  if (held) view_.use(id);
  send_removal(id, held);
}

void OwnerGroups::send_removal(const GroupId& id, bool held) {
  environment_.with_head([this, id, held](Result<ChannelPtr> channel) {
    if (!channel) {
      if (held) view_.unuse(id);
      return forget_if_unused(id);
    }
    proto::GroupRequest request;
    request.set_group_id(id.binary());
    (*channel)->call<proto::Empty>(
        "remove group",
        [request](Channel& at, Channel::Answer<proto::Empty> answer) {
          head_at(at).remove_group(at, request, std::move(answer));
        },
        [this, id, held](Result<proto::Empty> reply) {
          if (!reply && may_recover(reply.error().code)) return send_removal(id, held);
          if (held) view_.unuse(id);
          forget_if_unused(id);
          if (reply) return world_.ledger.groups().removal_confirmed(id);
          environment_.after(kRemoveAgainUs, "remove again", [this, id] { remove(id); });
        },
        kCallTimeoutUs);
    if (view_.lost(id, "it was removed by this process")) changed(id);
  });
}

// ---- news

void OwnerGroups::update(const proto::GroupInfo& info) {
  const GroupId id = GroupId::from_binary(info.spec().group_id());
  // A name is taken, or the disk does not take it: this news can come before the answer.
  const GroupRecord& known = world_.ledger.groups().at(id);
  if (info.state() == proto::GROUP_REMOVED && !known.registered && !known.plan.name.empty())
    world_.ledger.groups().doom(id);
  int64_t& newest = newest_[id];
  const bool is_newer = info.version() > newest;
  newest = std::max(newest, info.version());
  if (!view_.update(info)) return;
  if (!is_newer)
    violation(
        fmt::format("owner #{} believes news of group {} that are not newer than what it knew",
                    environment_.owner, id.hex().substr(0, 8)));
  if (view_.created(id) || view_.removed(id)) own_.erase(id);
  changed(id);
}

void OwnerGroups::changed(const GroupId& id) {
  environment_.drive([&](worker::Submitter& submitter) { submitter.group_moved(id); });
  if (!view_.removed(id)) return;
  sweep_later();
  forget_if_unused(id);
}

void OwnerGroups::forget_if_unused(const GroupId& id) {
  view_.forget_if_unused(id);
  if (!view_.watches(id)) newest_.erase(id);
}

void OwnerGroups::subscribe(const std::vector<GroupId>& ids) {
  environment_.with_head([this, ids](Result<ChannelPtr> channel) {
    if (!channel) {
      for (const GroupId& id : ids) {
        if (!view_.heard_of(id) && view_.lost(id, channel.error().message)) changed(id);
      }
      return;
    }
    proto::SubscribeRequest request;
    for (const GroupId& id : ids) request.add_group_ids(id.binary());
    // After a lost connection head_is_back() subscribes again.
    OwnerHead::send_subscription(**channel, request, [this, ids] {
      std::vector<GroupId> unheard;
      for (const GroupId& id : ids) {
        if (view_.watches(id) && !view_.heard_of(id)) unheard.push_back(id);
      }
      if (!unheard.empty()) ask_later(std::move(unheard));
    });
  });
}

void OwnerGroups::head_is_back() {
  connected_us_ = world_.clock.now_us();
  std::vector<GroupId> others;
  std::vector<GroupId> all = view_.watched();
  std::sort(all.begin(), all.end());  // the view has no order of its own
  for (const GroupId& id : all) {
    auto own = own_.find(id);
    if (own == own_.end()) {
      if (!view_.removed(id)) others.push_back(id);
    } else if (std::exchange(own->second.answered, false)) {
      send_registration(id);
    }
  }
  if (others.empty()) return;
  subscribe(others);
  remove_some(others);
  std::erase_if(others, [this](const GroupId& id) { return !view_.heard_of(id); });
  ask_later(std::move(others));
}

// Many a program removes its groups as soon as it can, while the head still tells of them.
void OwnerGroups::remove_some(const std::vector<GroupId>& ids) {
  for (const GroupId& id : ids) {
    const GroupRecord& group = world_.ledger.groups().at(id);
    if (!group.plan.removed_when_back || group.owner != environment_.owner) continue;
    environment_.after(world_.between(0, 1000), "remove group", [this, id] {
      if (!world_.ledger.groups().at(id).doomed) remove(id);
    });
  }
}

void OwnerGroups::ask_later(std::vector<GroupId> ids) {
  std::erase_if(ids, [this](const GroupId& id) { return view_.created(id); });
  if (ids.empty()) return;
  environment_.after(kRegistrationUs, "ask for groups", [this, ids = std::move(ids)] {
    for (const GroupId& id : ids) {
      if (view_.watches(id) && !view_.removed(id) && !view_.created(id)) ask(id);
    }
  });
}

void OwnerGroups::ask(const GroupId& id) {
  environment_.with_head([this, id](Result<ChannelPtr> channel) {
    if (!channel) return;
    proto::GetGroupRequest request;
    request.set_group_id(id.binary());
    (*channel)->call<proto::GetGroupReply>(
        "get group",
        [request](Channel& at, Channel::Answer<proto::GetGroupReply> answer) {
          head_at(at).get_group(request, std::move(answer));
        },
        [this, id](Result<proto::GetGroupReply> reply) {
          if (reply && reply->found()) return update(reply->group());
          if (!reply || own_.contains(id)) return;
          // After a restart of the head its creator has this time to register it again.
          if (world_.clock.now_us() - connected_us_ < kRegistrationUs) return ask_later({id});
          if (view_.lost(id, "the head does not know it")) changed(id);
        },
        kAskTimeoutUs);
  });
}

// ---- templates

worker::Template* OwnerGroups::function(const std::string& key, const proto::TaskTemplate& spec,
                                        worker::Submitter& submitter) {
  Function& slot = functions_[key];
  if (slot.made) return slot.made.get();
  slot.group = GroupId::from_binary(spec.group_id());
  if (view_.watch(slot.group)) subscribe({slot.group});
  view_.use(slot.group);
  slot.made = std::make_unique<worker::Template>();
  slot.made->spec = spec;
  slot.made->scheduling_class = submitter.scheduling_class(spec);
  keys_[slot.made.get()] = key;
  return slot.made.get();
}

void OwnerGroups::task_submitted(const worker::Template* function) {
  if (auto key = keys_.find(function); key != keys_.end()) ++functions_.at(key->second).open;
}

void OwnerGroups::task_ended(const worker::Template* function) {
  auto key = keys_.find(function);
  if (key == keys_.end()) return;
  Function& slot = functions_.at(key->second);
  if (--slot.open == 0 && view_.removed(slot.group)) sweep_later();
}

void OwnerGroups::sweep_later() {
  if (std::exchange(sweep_planned_, true)) return;
  environment_.after(kSweepUs, "free templates", [this] {
    sweep_planned_ = false;
    sweep();
  });
}

void OwnerGroups::sweep() {
  for (auto it = functions_.begin(); it != functions_.end();) {
    const Function& slot = it->second;
    if (slot.open > 0 || !view_.removed(slot.group)) {
      ++it;
      continue;
    }
    environment_.drive(
        [&](worker::Submitter& submitter) { submitter.release(slot.made->scheduling_class); });
    const GroupId group = slot.group;
    keys_.erase(slot.made.get());
    it = functions_.erase(it);
    view_.unuse(group);
    forget_if_unused(group);
  }
}

}  // namespace rt::sim
