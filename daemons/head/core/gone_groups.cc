#include "daemons/head/core/gone_groups.h"

#include "common/proto/common.pb.h"

namespace rt::head {
namespace {

// The head remembers the reasons of so many refusals.
constexpr size_t kRefusedGroupsKept = 1'000;

}  // namespace

GoneGroups::GoneGroups(Journal& journal, size_t most)
    : journal_(journal), most_(most), ids_(most) {}

GoneGroups::~GoneGroups() = default;

void GoneGroups::refuse(const GroupId& id, const Error& why) {
  if (!ids_.add(id)) return;
  refused_.insert_or_assign(id, why);
  refused_order_.push_back(id);
  if (refused_order_.size() <= kRefusedGroupsKept) return;
  refused_.erase(refused_order_.front());
  refused_order_.pop_front();
}

const Error* GoneGroups::refusal(const GroupId& id) const {
  auto it = refused_.find(id);
  return it == refused_.end() ? nullptr : &it->second;
}

void GoneGroups::keep(const GroupId& id) {
  if (!kept_.insert(id).second) return;
  kept_order_.push_back(id);
  if (kept_order_.size() <= most_) return;
  journal_.erase(table::kGroups, kept_order_.front().binary());
  kept_.erase(kept_order_.front());
  kept_order_.pop_front();
}

void GoneGroups::write(const GroupId& id) {
  if (std::optional<std::string> value = record(id)) {
    journal_.put(table::kGroups, id.binary(), *std::move(value));
  } else {
    journal_.erase(table::kGroups, id.binary());
  }
}

void GoneGroups::recover(const GroupId& id) {
  ids_.add(id);
  keep(id);
}

std::optional<std::string> GoneGroups::record(const GroupId& id) const {
  if (!kept(id)) return std::nullopt;
  proto::GroupInfo info;
  info.mutable_spec()->set_group_id(id.binary());
  info.mutable_spec()->set_job_id(job_of(id).binary());
  info.set_state(proto::GROUP_REMOVED);
  return info.SerializeAsString();
}

}  // namespace rt::head
