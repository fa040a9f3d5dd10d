#include "daemons/head/core/subscriptions.h"

#include <fmt/core.h>

#include <map>

#include "common/base/utf8.h"

namespace rt::head {

Subscriptions::Subscriptions(HeadSink& sink) : sink_(sink) {}

Subscriptions::~Subscriptions() = default;

Status Subscriptions::add(ConnId conn, const proto::SubscribeRequest& request,
                          int64_t max_followed) {
  for (const auto& id : request.actor_ids()) {
    if (!ActorId::is_valid(id))
      return make_error(Code::kInvalid, fmt::format("subscribe: an actor id has {} bytes, not {}",
                                                    id.size(), ActorId::kSize));
  }
  for (const auto& id : request.group_ids()) {
    if (!GroupId::is_valid(id))
      return make_error(Code::kInvalid,
                        fmt::format("subscribe: a placement group id has {} bytes, not {}",
                                    id.size(), GroupId::kSize));
  }
  if (!request.logs_of_job().empty() && !JobId::is_valid(request.logs_of_job()))
    return make_error(Code::kInvalid, fmt::format("subscribe: a job id has {} bytes, not {}",
                                                  request.logs_of_job().size(), JobId::kSize));
  auto found = subscribers_.find(conn);
  size_t followed =
      found == subscribers_.end() ? 0 : found->second.actors.size() + found->second.groups.size();
  for (const auto& bytes : request.actor_ids()) {
    // A subscription that is repeated on a new connection does not count twice.
    followed +=
        found == subscribers_.end() || !found->second.actors.contains(ActorId::from_binary(bytes));
  }
  for (const auto& bytes : request.group_ids()) {
    followed +=
        found == subscribers_.end() || !found->second.groups.contains(GroupId::from_binary(bytes));
  }
  if (followed > static_cast<size_t>(max_followed))
    return make_error(
        Code::kResourceExhausted,
        fmt::format("one connection may follow {} living actors and placement groups. Drop those "
                    "that you no longer need, or raise the head's setting "
                    "subscriptions_per_connection",
                    max_followed));

  Subscriber& subscriber = subscribers_[conn];
  subscriber.nodes |= request.nodes();
  subscriber.errors |= request.errors();
  for (const auto& bytes : request.actor_ids()) {
    ActorId id = ActorId::from_binary(bytes);
    if (subscriber.actors.insert(id).second) by_actor_[id].insert(conn);
  }
  for (const auto& bytes : request.group_ids()) {
    GroupId id = GroupId::from_binary(bytes);
    if (subscriber.groups.insert(id).second) by_group_[id].insert(conn);
  }
  if (!request.logs_of_job().empty()) {
    JobId job = JobId::from_binary(request.logs_of_job());
    if (subscriber.jobs.insert(job).second) by_job_[job].insert(conn);
  }
  return {};
}

void Subscriptions::remove(ConnId conn) {
  auto it = subscribers_.find(conn);
  if (it == subscribers_.end()) return;
  auto drop = [conn](auto& index, const auto& id) {
    auto entry = index.find(id);
    entry->second.erase(conn);
    if (entry->second.empty()) index.erase(entry);
  };
  for (const ActorId& id : it->second.actors) drop(by_actor_, id);
  for (const GroupId& id : it->second.groups) drop(by_group_, id);
  for (const JobId& id : it->second.jobs) drop(by_job_, id);
  subscribers_.erase(it);
}

void Subscriptions::actor_ended(const ActorId& id) {
  auto it = by_actor_.find(id);
  if (it == by_actor_.end()) return;
  for (ConnId conn : it->second) subscribers_.at(conn).actors.erase(id);
  by_actor_.erase(it);
}

void Subscriptions::group_ended(const GroupId& id) {
  auto it = by_group_.find(id);
  if (it == by_group_.end()) return;
  for (ConnId conn : it->second) subscribers_.at(conn).groups.erase(id);
  by_group_.erase(it);
}

void Subscriptions::publish_group(const GroupId& id, const proto::GroupInfo& info) const {
  auto it = by_group_.find(id);
  if (it == by_group_.end()) return;
  proto::HeadEvent event;
  *event.add_groups() = info;
  for (ConnId conn : it->second) sink_.push(conn, event);
}

void Subscriptions::publish_actor(const ActorId& id, const proto::ActorInfo& info) const {
  auto it = by_actor_.find(id);
  if (it == by_actor_.end()) return;
  proto::HeadEvent event;
  *event.add_actors() = info;
  for (ConnId conn : it->second) sink_.push(conn, event);
}

void Subscriptions::publish_nodes(const proto::HeadEvent& event) const {
  for (const auto& [conn, subscriber] : subscribers_) {
    if (subscriber.nodes) sink_.push(conn, event);
  }
}

void Subscriptions::publish_logs(const proto::HeadEvent& event) const {
  std::map<ConnId, proto::HeadEvent> out;
  auto followers = [this](const std::string& job) -> const std::set<ConnId>* {
    auto it = by_job_.find(JobId::from_binary(job));
    return JobId::is_valid(job) && it != by_job_.end() ? &it->second : nullptr;
  };
  for (const auto& lines : event.logs()) {
    if (const auto* conns = followers(lines.job_id())) {
      for (ConnId conn : *conns) *out[conn].add_logs() = lines;
    }
  }
  for (const auto& notice : event.notices()) {
    if (notice.job_id().empty()) {
      for (const auto& [conn, subscriber] : subscribers_) {
        if (subscriber.errors) *out[conn].add_notices() = notice;
      }
    } else if (const auto* conns = followers(notice.job_id())) {
      for (ConnId conn : *conns) *out[conn].add_notices() = notice;
    }
  }
  for (const auto& [conn, part] : out) sink_.push(conn, part);
}

void Subscriptions::publish_notice(const JobId& job, const std::string& severity,
                                   const std::string& text) const {
  proto::HeadEvent event;
  proto::Notice& notice = *event.add_notices();
  notice.set_severity(severity);
  // It holds names that users have chosen, and drivers print it on their terminals.
  notice.set_text(printable(text));
  notice.set_job_id(job.binary());
  notice.set_source("head");
  publish_logs(event);
}

void Subscriptions::check_invariants() const {
  size_t actors = 0, groups = 0, jobs = 0;
  size_t indexed_actors = 0, indexed_groups = 0, indexed_jobs = 0;
  for (const auto& [conn, subscriber] : subscribers_) {
    actors += subscriber.actors.size();
    groups += subscriber.groups.size();
    jobs += subscriber.jobs.size();
  }
  for (const auto& [id, conns] : by_actor_) {
    RT_CHECK(!conns.empty());
    for (ConnId conn : conns) RT_CHECK(subscribers_.at(conn).actors.contains(id));
    indexed_actors += conns.size();
  }
  for (const auto& [id, conns] : by_group_) {
    RT_CHECK(!conns.empty());
    for (ConnId conn : conns) RT_CHECK(subscribers_.at(conn).groups.contains(id));
    indexed_groups += conns.size();
  }
  for (const auto& [id, conns] : by_job_) {
    RT_CHECK(!conns.empty());
    for (ConnId conn : conns) RT_CHECK(subscribers_.at(conn).jobs.contains(id));
    indexed_jobs += conns.size();
  }
  RT_CHECK(actors == indexed_actors && groups == indexed_groups && jobs == indexed_jobs);
}

}  // namespace rt::head
