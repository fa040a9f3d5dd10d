#include "tests/sim/node_sessions.h"

#include <fmt/core.h>

#include "tests/sim/sim_head.h"

namespace rt::sim {

std::optional<NodeSessions::Session> NodeSessions::remove(uint64_t connection) {
  auto gone = sessions_.extract(connection);
  if (gone.empty()) return {};
  return std::move(gone.mapped());
}

Channel* NodeSessions::channel(node::OwnerId owner) const {
  auto it = sessions_.find(owner);
  return it == sessions_.end() ? nullptr : it->second.channel.get();
}

Channel* NodeSessions::channel_of(const WorkerId& worker) const {
  for (const auto& [id, session] : sessions_) {
    if (session.worker == worker) return session.channel.get();
  }
  return nullptr;
}

void NodeSessions::tell_drivers(const char* what, const Channel::AtPeer& at_driver) const {
  for (const auto& [id, session] : sessions_) {
    if (session.is_driver) session.channel->send(what, at_driver);
  }
}

// ---- processes that ask to be registered

template <class T>
void NodeSessions::ask(Channel& from, const Answer<T>& answer,
                       std::function<void(Session&)> admitted) {
  const uint64_t connection = from.connection();
  auto session = sessions_.find(connection);
  node::AdmissionDesk::Applicant applicant;
  if (session != sessions_.end()) applicant = {connection, true, session->second.worker};
  const auto entry = desk_.ask(session == sessions_.end() ? nullptr : &applicant);
  if (!entry) return answer(entry.error());
  if (*entry == node::AdmissionDesk::Entry::kGoesOn) return admitted(session->second);
  waiting_.push_back(
      [this, from = from.shared_from_this(), answer, admitted] { ask(*from, answer, admitted); });
}

void NodeSessions::open() {
  desk_.open();
  for (auto& again : std::exchange(waiting_, {})) again();
}

void NodeSessions::register_worker(Channel& from, const WorkerId& id, int pid,
                                   Answer<proto::Empty> answer) {
  ask(from, answer, [this, id, pid, answer](Session& session) {
    if (Status admitted = desk_.admit_worker(id); !admitted) return answer(admitted.error());
    session.worker = id;
    Status status;
    drive_([&](node::NodeCore& core, Now now) {
      status = core.worker_registered(id, pid, "w-" + id.hex().substr(0, 16), now);
    });
    if (status) return answer(proto::Empty());
    session.worker = WorkerId::nil();
    answer(status.error());
  });
}

void NodeSessions::register_driver(Channel& from, int pid,
                                   Answer<proto::RegisterWorkerReply> answer) {
  const uint64_t connection = from.connection();
  ask(from, answer, [this, connection, pid, answer](Session&) {
    Channel* head = head_.channel();
    const auto admitted = desk_.admit_driver(connection, JobId::nil(), head != nullptr);
    if (!admitted) return answer(admitted.error());
    proto::AddJobRequest add;
    add.set_node_id(core_.view().identity().id.binary());
    add.set_ip(core_.view().identity().ip);
    add.set_pid(pid);
    head->call<proto::AddJobReply>(
        "add job",
        [add](Channel& at, Answer<proto::AddJobReply> reply) {
          head_at(at).add_job(add, std::move(reply));
        },
        [this, connection, pid, answer](Result<proto::AddJobReply> added) {
          const node::AdmissionDesk::Answer next = desk_.head_answered(connection, added);
          finish_job(next.finish);
          if (next.refusal) return answer(*next.refusal);
          if (!next.join.is_nil()) driver_joined(connection, next.join, pid, answer);
        },
        30'000'000);
  });
}

void NodeSessions::driver_joined(uint64_t connection, JobId job, int pid,
                                 const Answer<proto::RegisterWorkerReply>& answer) {
  const node::NodeIdentity& me = core_.view().identity();
  if (!sessions_.contains(connection))
    violation(fmt::format("the node at {} admits a driver that has left", me.ip));
  WorkerId id = driver_worker_id(job);
  Status joined;
  drive_([&](node::NodeCore& core, Now now) {
    joined = core.add_driver(id, job, pid, "driver", now);
  });
  if (!joined) {
    finish_job(desk_.driver_refused(connection));
    return answer(joined.error());
  }
  Session& session = sessions_.at(connection);
  session.worker = id;
  session.is_driver = true;
  session.job = job;
  proto::JobInfo info;
  info.set_job_id(job.binary());
  info.set_driver_node_id(me.id.binary());
  info.set_driver_worker_id(id.binary());
  desk_.driver_joined(connection, info);
  proto::RegisterWorkerReply reply;
  reply.set_node_id(me.id.binary());
  reply.set_job_id(job.binary());
  reply.set_ip(me.ip);
  reply.set_port(me.port);
  answer(reply);
}

void NodeSessions::finish_job(const JobId& job) {
  if (job.is_nil()) return;
  proto::FinishJobRequest finish;
  finish.set_job_id(job.binary());
  head_.send_reliably<proto::FinishJobRequest>(
      "finish job",
      [](Channel& at, const proto::FinishJobRequest& r, Answer<proto::Empty> a) {
        head_at(at).finish_job(r, std::move(a));
      },
      finish);
}

}  // namespace rt::sim
