#include "daemons/node_manager/service/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "common/base/log.h"

namespace rt::node {

Sessions::Sessions(std::string own_socket, std::string store_socket)
    : own_socket_(std::move(own_socket)), store_socket_(std::move(store_socket)) {
  if (auto counters = SharedCounters::create()) {
    event_counters_ = std::move(*counters);
  } else {
    RT_WARN("task events that a killed process did not send will not be counted as dropped: {}",
            counters.error().message);
  }
}

Sessions::~Sessions() {
  for (auto& [connection, session] : sessions_) session.connection->set_closed_handler(nullptr);
}

// ---- connections

Session& Sessions::add(const std::shared_ptr<rpc::Connection>& connection) {
  Session& session = sessions_[connection.get()];
  session.id = next_owner_++;
  session.connection = connection;
  owners_[session.id] = connection.get();
  return session;
}

std::optional<Session> Sessions::remove(const rpc::Connection* connection) {
  auto it = sessions_.find(connection);
  if (it == sessions_.end()) return {};
  Session session = std::move(it->second);
  sessions_.erase(it);
  owners_.erase(session.id);
  if (!session.worker.is_nil()) processes_.erase(session.worker);
  if (!session.socket_path.empty()) ::unlink(session.socket_path.c_str());
  return session;
}

Session* Sessions::find(const rpc::Connection& connection) {
  auto it = sessions_.find(&connection);
  return it == sessions_.end() ? nullptr : &it->second;
}

rpc::Connection* Sessions::owner(OwnerId id) const {
  auto it = owners_.find(id);
  return it == owners_.end() ? nullptr : it->second;
}

rpc::Connection* Sessions::process(const WorkerId& id) const {
  auto it = processes_.find(id);
  return it == processes_.end() ? nullptr : it->second;
}

void Sessions::close_all(const Error& why) {
  std::vector<std::shared_ptr<rpc::Connection>> open;
  for (const auto& [key, session] : sessions_) open.push_back(session.connection);
  for (const auto& connection : open) connection->close(why);
}

// ---- registered processes

void Sessions::name(Session& session, const WorkerId& worker) {
  // remove() takes back this name only. The entry of any other would outlive the connection.
  RT_CHECK(session.worker.is_nil() && !worker.is_nil());
  session.worker = worker;
  processes_[worker] = session.connection.get();
}

void Sessions::unname(Session& session) {
  const WorkerId id = std::exchange(session.worker, WorkerId::nil());
  processes_.erase(id);
  for (const auto& [connection, other] : sessions_) {
    if (other.worker == id) processes_[id] = other.connection.get();
  }
}

void Sessions::joined(Session& session, const std::string& socket_path,
                      proto::RegisterWorkerReply* reply) {
  // Only a path in the directory of the node-manager's own socket is ever unlinked.
  const size_t slash = own_socket_.rfind('/') + 1;
  const bool beside = slash > 0 && socket_path.compare(0, slash, own_socket_, 0, slash) == 0 &&
                      socket_path.size() > slash &&
                      socket_path.find('/', slash) == std::string::npos;
  if (beside && socket_path != own_socket_ && socket_path != store_socket_)
    session.socket_path = socket_path;
  if (!event_counters_) return;
  session.event_counter = event_counters_->take();
  if (session.event_counter < 0) return;
  reply->set_event_counters(event_counters_->place());
  reply->set_event_counter(session.event_counter);
}

int64_t Sessions::take_lost_events(const Session& gone) {
  constexpr int64_t kBelievable = int64_t{1} << 32;  // the process itself wrote the counter
  if (gone.event_counter < 0) return 0;
  const int64_t recorded = event_counters_->give_back(gone.event_counter);
  return std::clamp<int64_t>(recorded - gone.events_received, 0, kBelievable);
}

void Sessions::tell_processes(const proto::HeadEvent& event) const {
  for (const auto& [id, connection] : processes_)
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnHeadEvent, event);
}

void Sessions::tell_drivers(const std::string& text, bool last_words) const {
  proto::LeaseNotice notice;
  notice.set_message(text);
  if (last_words) notice.set_code(static_cast<int>(Code::kLocalNodeDied));
  for (const auto& [key, session] : sessions_) {
    if (!session.is_driver) continue;
    rpc::notify(*session.connection, &proto::NodeClientService::Stub::OnLeaseNotice, notice);
    if (last_words) session.connection->flush();
  }
}

// ---- figures

size_t Sessions::queued_bytes() const {
  size_t queued = 0;
  for (const auto& [key, session] : sessions_) queued += session.connection->queued_bytes();
  return queued;
}

void Sessions::fill_waiting(proto::ResourceReport* report) const {
  int64_t for_arguments = 0, for_actors = 0;
  for (const auto& [key, session] : sessions_) {
    for_arguments += std::max<int64_t>(0, session.waiting.for_arguments());
    for_actors += std::max<int64_t>(0, session.waiting.for_actors());
  }
  report->set_waiting_for_arguments(for_arguments);
  report->set_waiting_for_actors(for_actors);
}

}  // namespace rt::node
