#include "tests/sim/sim_head.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {
namespace {

// A disk that forgets may lose in a crash all that was written within this time.
constexpr int64_t kForgottenUs = 1'000'000;
// As in daemons/head/service/head_server.
constexpr int64_t kCloseDelayUs = 20'000;

head::HeadOptions options_of(World& world) {
  head::HeadOptions options;
  options.settings = world.settings;
  options.session_name = "sim";
  options.head_address = "10.0.0.0:6379";
  options.seed = world.rng.next();
  return options;
}

template <class T>
void answer_status(const Channel::Answer<T>& answer, const Status& status) {
  if (status) {
    answer(T());
  } else {
    answer(status.error());
  }
}

}  // namespace

SimHead::SimHead(World& world, Disk& disk, std::function<void()> cannot_start)
    : Process(world.clock, world.network, kHeadHost),
      world_(world),
      disk_(disk),
      core_(options_of(world), *this),
      records_(world, records_environment()),
      cannot_start_(std::move(cannot_start)) {
  Status loaded =
      drive([&](head::HeadCore& core, Now now) { return core.load(disk_.tables, now); });
  if (!loaded) violation("the head cannot read its own state: " + loaded.error().message);
  world_.head = this;
}

HeadRecords::Environment SimHead::records_environment() {
  return {.drive =
              [this](const HeadRecords::Event& event) {
                drive([&](head::HeadCore& core, Now now) { event(core, now); });
              },
          .core = core_,
          .shown = [this](const char* table) { return shown(table); },
          .disk = disk_.tables,
          .channel = [this](head::ConnId conn) { return channel(conn); }};
}

void SimHead::accepted(const ChannelPtr& channel) {
  channels_[channel->connection()] = channel;
  channel->on_closed = [this, id = channel->connection()] {
    channels_.erase(id);
    records_.closed(id);
    drive([&](head::HeadCore& core, Now now) { core.connection_closed(id, now); });
  };
}

void SimHead::crash() {
  for (auto on_disk = world_.rng.below(writing_.size() + 1); on_disk > 0; --on_disk) {
    if (!disk_.full) commit(writing_.front().batch);
    writing_.pop_front();
  }
  if (disk_.forgets) {
    disk_.set_back(clock_.now_us() - world_.between(0, kForgottenUs));
    world_.jobs.disk_set_back();
  }
  world_.head = nullptr;
  world_.links.head_ended();
  end(Exit::kOrderly);
}

Channel* SimHead::channel(head::ConnId conn) {
  auto it = channels_.find(conn);
  return it == channels_.end() ? nullptr : it->second.get();
}

// ---- requests

void SimHead::register_node(Channel& from, const proto::RegisterNodeRequest& request,
                            Answer<proto::RegisterNodeReply> answer) {
  const std::string& id = request.node().node_id();
  auto checked = [this, id, answer](Result<proto::RegisterNodeReply> reply) {
    if (reply && dead_nodes_.contains(id))
      violation("a node that was declared dead registers again with the same head");
    answer(std::move(reply));
  };
  drive([&](head::HeadCore& core, Now now) {
    core.register_node(from.connection(), request, now, checked);
  });
}

void SimHead::report_resources(Channel& from, const proto::ResourceReport& report) {
  (void)drive([&](head::HeadCore& core, Now now) {
    return core.report_resources(from.connection(), report, now);
  });
}

void SimHead::unregister_node(Channel& from, const proto::UnregisterNodeRequest& request) {
  (void)drive([&](head::HeadCore& core, Now now) {
    return core.unregister_node(from.connection(), request, now);
  });
}

void SimHead::actor_started(Channel& from, const proto::ActorStarted& report,
                            Answer<proto::Empty> answer) {
  answer_status(answer, drive([&](head::HeadCore& core, Now now) {
                  return core.actor_started(from.connection(), report, now);
                }));
}

void SimHead::actor_died(Channel& from, const proto::ActorDied& report,
                         Answer<proto::Empty> answer) {
  answer_status(answer, drive([&](head::HeadCore& core, Now now) {
                  return core.actor_died(from.connection(), report, now);
                }));
}

void SimHead::dead_workers(Channel& from, const proto::DeadWorkers& report,
                           Answer<proto::Empty> answer) {
  const Status heard = drive([&](head::HeadCore& core, Now now) {
    return core.dead_workers(from.connection(), report, now);
  });
  if (heard) world_.links.end_heard(report);
  answer_status(answer, heard);
}

void SimHead::add_job(const proto::AddJobRequest& request, Answer<proto::AddJobReply> answer) {
  drive([&](head::HeadCore& core, Now now) { core.add_job(request, now, answer); });
}

void SimHead::finish_job(const proto::FinishJobRequest& request, Answer<proto::Empty> answer) {
  answer_status(
      answer, drive([&](head::HeadCore& core, Now now) { return core.finish_job(request, now); }));
}

void SimHead::register_actor(const proto::RegisterActorRequest& request,
                             Answer<proto::RegisterActorReply> answer) {
  drive([&](head::HeadCore& core, Now now) { core.register_actor(request, now, answer); });
}

void SimHead::get_actor(const proto::GetActorRequest& request,
                        Answer<proto::GetActorReply> answer) {
  answer(drive([&](head::HeadCore& core, Now) { return core.view().get_actor(request); }));
}

void SimHead::kill_actor(const proto::KillActorRequest& request, Answer<proto::Empty> answer) {
  drive([&](head::HeadCore& core, Now now) { core.kill_actor(request, now, answer); });
}

void SimHead::subscribe(Channel& from, const proto::SubscribeRequest& request,
                        Answer<proto::Empty> answer) {
  const Status subscribed = drive([&](head::HeadCore& core, Now now) {
    return core.subscribe(from.connection(), request, now);
  });
  if (subscribed) records_.subscribed(from.connection(), request);
  answer_status(answer, subscribed);
}

void SimHead::register_group(Channel& from, const proto::RegisterGroupRequest& request,
                             Answer<proto::Empty> answer) {
  drive([&](head::HeadCore& core, Now now) {
    core.register_group(from.connection(), request, now, answer);
  });
}

void SimHead::remove_group(Channel& from, const proto::GroupRequest& request,
                           Answer<proto::Empty> answer) {
  drive([&](head::HeadCore& core, Now now) {
    core.remove_group(from.connection(), request, now, answer);
  });
}

void SimHead::get_group(const proto::GetGroupRequest& request,
                        Answer<proto::GetGroupReply> answer) {
  answer(drive([&](head::HeadCore& core, Now) { return core.view().get_group(request); }));
}

// ---- decisions

void SimHead::persist(uint64_t id, head::Batch batch) {
  writing_.push_back({id, std::move(batch)});
  if (!busy_) write_next();
}

// Writes one batch after the other. The commit and its confirmation to the core are two events, so
// that a crash may come between them.
void SimHead::write_next() {
  busy_ = !writing_.empty();
  if (!busy_) return;
  after(world_.between(100, 3000), "disk write", [this] {
    Writing done = std::move(writing_.front());
    writing_.pop_front();
    Status status;
    if (disk_.full) {
      status = make_error(Code::kOutOfDisk, "no space left on device");
      refused_ = std::move(done);
    } else {
      commit(done.batch);
    }
    after(world_.between(5, 50), "committed",
          [this, id = done.id, status] { written(id, status); });
    write_next();
  });
}

void SimHead::written(uint64_t batch, const Status& status) {
  if (!listens_ && !status) {
    world_.head = nullptr;
    end(Exit::kOrderly);
    return cannot_start_();
  }
  listens_ = true;
  refused_.reset();
  drive([&](head::HeadCore& core, Now now) { core.persisted(batch, status, now); });
}

// The core has to show this of a table: the records on the disk, with those that are on the way
// there, and with those that it believes to be.
head::Records SimHead::shown(const char* table) const {
  auto on_disk = disk_.tables.find(table);
  head::Records out = on_disk == disk_.tables.end() ? head::Records() : on_disk->second;
  auto add = [&out, table](const Writing& writing) {
    for (const head::Write& write : writing.batch) {
      if (write.table != table) continue;
      if (write.value) {
        out[write.key] = *write.value;
      } else {
        out.erase(write.key);
      }
    }
  };
  if (refused_) add(*refused_);
  for (const Writing& writing : writing_) add(writing);
  return out;
}

void SimHead::commit(const head::Batch& batch) {
  disk_.commit(batch, clock_.now_us());
  for (const head::Write& write : batch) {
    if (!write.value || write.table != head::table::kGroups) continue;
    proto::GroupInfo group;
    RT_CHECK(group.ParseFromString(*write.value));
    world_.ledger.groups().committed(group);
  }
  const auto is_value = [](const head::Write& write) { return write.table == head::table::kKv; };
  if (std::ranges::any_of(batch, is_value)) records_.check_disk();
}

template <class T>
SimHead::Answer<T> SimHead::awaited(const NodeId& node, const char* what, Answer<T> answered) {
  return [this, call = world_.links.asked(node, what),
          answered = std::move(answered)](Result<T> reply) {
    world_.links.answered(call);
    answered(std::move(reply));
  };
}

void SimHead::create_actor(const head::NodeLink& node, const proto::CreateActorRequest& request) {
  const proto::TaskTemplate& creation = request.spec().creation();
  if (!creation.group_id().empty() && request.bundle_index() >= 0)
    check_seats(core_.view(), GroupId::from_binary(creation.group_id()), request.bundle_index(),
                ActorId::from_binary(request.spec().actor_id()));
  ActorId id = ActorId::from_binary(request.spec().actor_id());
  Answer<proto::CreateActorReply> answered =
      [this, node = node.node, id, epoch = request.epoch()](Result<proto::CreateActorReply> reply) {
        drive([&](head::HeadCore& core, Now now) {
          core.create_actor_answered(node, id, epoch, reply, now);
        });
      };
  Channel* to = channel(node.conn);
  if (!to)
    return void(after(0, "no node", [answered] {
      answered(make_error(Code::kUnavailable, "the connection broke"));
    }));
  to->call<proto::CreateActorReply>(
      "create actor",
      [request](Channel& at, Answer<proto::CreateActorReply> answer) {
        node_at(at).create_actor(at, request, std::move(answer));
      },
      awaited(node.node, "create actor", answered));
}

void SimHead::kill_worker(const head::NodeLink& node, const proto::KillWorkerRequest& request) {
  if (Channel* to = channel(node.conn))
    to->send("kill worker", [request](Channel& at) { node_at(at).kill(request); });
}

void SimHead::prepare_bundles(const head::NodeLink& node,
                              const proto::PrepareBundlesRequest& request) {
  Answer<proto::PrepareBundlesReply> answered =
      [this, node = node.node, group = GroupId::from_binary(request.group_id()),
       epoch = request.epoch()](Result<proto::PrepareBundlesReply> reply) {
        drive([&](head::HeadCore& core, Now now) {
          core.prepare_bundles_answered(node, group, epoch, reply, now);
        });
      };
  Channel* to = channel(node.conn);
  if (!to)
    return void(after(0, "no node", [answered] {
      answered(make_error(Code::kUnavailable, "the connection broke"));
    }));
  to->call<proto::PrepareBundlesReply>(
      "prepare bundles",
      [request](Channel& at, Answer<proto::PrepareBundlesReply> answer) {
        node_at(at).prepare_bundles(request, std::move(answer));
      },
      awaited(node.node, "prepare bundles", answered));
}

void SimHead::return_bundles(const head::NodeLink& node,
                             const proto::ReturnBundlesRequest& request) {
  if (Channel* to = channel(node.conn))
    to->send("return bundles", [request](Channel& at) { node_at(at).return_bundles(request); });
}

void SimHead::start_job(const head::NodeLink& node, const proto::StartJobProcessRequest& request) {
  records_.start_job(node, request);
}
void SimHead::stop_job(const head::NodeLink& node, const std::string& submission_id) {
  records_.stop_job(node, submission_id);
}
void SimHead::remove_job_log(const head::NodeLink& node, const std::string& submission_id) {
  records_.remove_job_log(node, submission_id);
}

void SimHead::probe(const NodeId& node, const std::string&, int) {
  auto known = world_.nodes.find(node);
  // Null if the node was killed; its host then refuses the connection.
  SimNode* to = known == world_.nodes.end() ? nullptr : known->second;
  network_.connect(
      *this, to ? to->host() : kHeadHost, "probe", [to]() -> Process* { return to; },
      [this, node](Result<ChannelPtr> channel) {
        Status answer;
        if (channel) {
          (*channel)->close();
        } else {
          answer = channel.error();
        }
        drive([&](head::HeadCore& core, Now now) { core.probe_answered(node, answer, now); });
      });
}

void SimHead::push(head::ConnId conn, const proto::HeadEvent& event) {
  for (const proto::GroupInfo& group : event.groups()) world_.ledger.groups().check_news(group);
  for (const proto::Node& node : event.nodes()) {
    if (!node.alive()) dead_nodes_.insert(node.node_id());
  }
  records_.pushed(conn, event);
  Channel* to = channel(conn);
  if (!to) return;
  to->send("head event", [event](Channel& at) {
    if (auto* node = dynamic_cast<SimNode*>(at.process())) {
      node->on_head_event(event);
    } else {
      owner_at(at).on_head_event(event);
    }
  });
}

void SimHead::close(head::ConnId conn, const Error&) {
  if (Channel* to = channel(conn))
    after(kCloseDelayUs, "close", [to = to->shared_from_this()] { to->close(); });
}

void SimHead::check(Now now) {
  core_.check_invariants(now);
  removed_groups_.look(core_.view(), world_.ledger.groups());
  arm_tick();
}

void SimHead::arm_tick() {
  const int64_t at_us = core_.next_tick_us();
  if (at_us < 0 || (tick_ && tick_at_us_ <= at_us)) return;
  if (tick_) clock_.cancel(tick_);
  tick_at_us_ = at_us;
  tick_ = clock_.at(at_us, "head tick", number(), [this] {
    tick_ = 0;
    if (alive()) drive([](head::HeadCore& core, Now now) { core.tick(now); });
  });
}

}  // namespace rt::sim
