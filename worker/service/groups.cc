#include "worker/service/groups.h"

#include <fmt/core.h>

#include <optional>

#include "common/base/clock.h"
#include "common/rpc/client.h"
#include "worker/service/current_task.h"
#include "worker/service/executing_task.h"
#include "worker/service/execution.h"
#include "worker/service/head_connection.h"
#include "worker/service/lease_client.h"
#include "worker/service/notices.h"
#include "worker/service/pump.h"
#include "worker/service/submission.h"
#include "worker/session_over.h"

namespace rt::worker {

namespace {

constexpr char kUnknown[] = "the head does not know it";

void move_into(proto::TaskTemplate* spec, const GroupId& group) {
  spec->set_group_id(group.binary());
  spec->set_bundle_index(-1);
  spec->set_captures_children(true);
}

}  // namespace

Groups::Groups(const Parts& parts) : parts_(parts) {}

Groups::~Groups() = default;

// The creation, the removal and the news of groups.

Result<GroupId> Groups::create(WorkerLock& lock, proto::GroupSpec spec) {
  if (parts_.shared.stopping) return session_over();
  const int64_t most = parts_.shared.settings().placement_group_max_bundles;
  if (spec.bundles_size() > most)
    return make_error(Code::kInvalid,
                      fmt::format("placement group: it has {} bundles, and {} are allowed; make "
                                  "several groups, or raise the setting "
                                  "placement_group_max_bundles",
                                  spec.bundles_size(), most));
  const GroupId id = make_group_id(parts_.shared.context.job_id, parts_.shared.self.rng());
  complete_spec(id, &spec);
  const bool named = !spec.name().empty();
  auto request = std::make_shared<proto::RegisterGroupRequest>();
  *request->mutable_spec() = std::move(spec);
  // The registration subscribes.
  view_.watch_own(id);
  own_[id] = {std::move(request)};
  auto answer = std::make_shared<std::optional<Status>>();
  send_registration(id, [this, id, named, answer](const Status& registered) {
    assert_locked();
    if (!registered && !named) refused(id, registered.error());
    *answer = registered;
  });
  parts_.shared.loop.flush_all();
  if (!named) {
    // The id may leave this process right after the return, and the request leaves before. Only the
    // first request of a process has to wait, for its connection to the head. What a driver makes
    // ends with it, so a driver goes on when wait_until() has it look for signals.
    parts_.pump.wait_until(lock, -1, [&] {
      assert_locked();
      return parts_.shared.stopping || parts_.head.is_open() || parts_.head.is_lost() || *answer;
    });
    parts_.shared.loop.flush_all();
    return id;
  }
  const Status answered = parts_.pump.await_answer(lock, [&] { return answer->has_value(); });
  if (answered && **answer) return id;
  own_.erase(id);
  view_.forget(id);
  if (answered) return (*answer)->error();
  // The head may have the request, and nobody would remove the group.
  if (!parts_.shared.stopping) send_removal(id, false, true, [](const Status&) {});
  return answered.error();
}

void Groups::complete_spec(const GroupId& id, proto::GroupSpec* spec) const {
  spec->set_group_id(id.binary());
  spec->set_job_id(parts_.shared.context.job_id.binary());
  if (spec->ray_namespace().empty()) spec->set_ray_namespace(parts_.shared.context.ray_namespace);
  *spec->mutable_owner() = parts_.shared.self.address();
  const proto::ActorSpec* actor = parts_.execution.actor_spec();
  if (actor) spec->set_creator_actor_id(actor->actor_id());
  // Without a detached actor above it, a group depends on its actor instead of the job on request.
  spec->set_outlives_job(parts_.shared.options.job_config.outlives_job() ||
                         (actor && spec->outlives_job()));
  spec->set_created_us(wall_now_us());
}

void Groups::send_registration(const GroupId& id, Registered done) {
  parts_.head.with(
      [this, id, done = std::move(done)](Result<std::shared_ptr<rpc::Connection>> connection) {
        assert_locked();
        auto own = own_.find(id);
        if (own == own_.end()) return;  // It was removed before the head could be reached.
        if (!connection) return done(connection.error());
        rpc::call(**connection, &proto::HeadService::Stub::RegisterGroup, *own->second.request,
                  60'000'000, [this, id, done](Result<proto::Empty> reply) {
                    assert_locked();
                    auto own = own_.find(id);
                    // The head went away with the request. It accepts the same request again.
                    if (!reply && may_recover(reply.error().code) && own != own_.end() &&
                        !parts_.shared.stopping)
                      return send_registration(id, done);
                    if (own != own_.end()) own->second.answered = true;
                    done(reply ? Status() : Status(reply.error()));
                  });
      });
}

// Nobody waits for the answer to the registration of a group without a name. The head may have said
// already that it is removed.
void Groups::refused(const GroupId& id, const Error& why) {
  constexpr size_t kKept = 1000;
  own_.erase(id);
  view_.watch_own(id);
  view_.use(id);
  view_.lost(id, why.message);
  // Another process may have removed a group that is registered again.
  if (!parts_.shared.stopping && why.code != Code::kNotFound)
    parts_.notices.tell(
        fmt::format("The placement group {} cannot be created, and what is to run in "
                    "it never will: {}",
                    id.hex(), why.message));
  changed(id);
  refused_.push_back(id);
  if (refused_.size() <= kKept) return;
  view_.unuse(refused_.front());
  view_.forget_if_unused(refused_.front());
  refused_.pop_front();
}

Status Groups::remove(WorkerLock& lock, const GroupId& id) {
  if (parts_.shared.stopping) return session_over();
  // If the head is lost with the request, only this process repeats it. When it has ended by then,
  // a group that ends with it is gone; others would stay.
  const bool confirm = !ends_with_this_process(id);
  own_.erase(id);
  // Kept until the head has answered, because it may still tell of the group as it was.
  const bool held = view_.watches(id);
  if (held) view_.use(id);
  auto answer = std::make_shared<std::optional<Status>>();
  send_removal(id, held, confirm, [answer](const Status& status) { *answer = status; });
  // The removal goes on when the wait for it is interrupted.
  RT_TRY(parts_.pump.await_answer(lock, [&] { return answer->has_value(); }));
  if (**answer && view_.lost(id, "it was removed by this process")) changed(id);
  parts_.shared.loop.flush_all();
  return **answer;
}

bool Groups::ends_with_this_process(const GroupId& id) const {
  auto own = own_.find(id);
  const proto::GroupSpec* spec =
      own != own_.end() ? &own->second.request->spec() : view_.own_spec(id);
  // The groups of tasks and actors last as long as their job.
  return spec && parts_.shared.options.is_driver && spec->name().empty() && !spec->detached();
}

void Groups::send_removal(const GroupId& id, bool held, bool confirm, Registered done) {
  auto settled = [this, id, held] {
    assert_locked();
    if (held) view_.unuse(id);
    view_.forget_if_unused(id);
  };
  parts_.head.with([this, id, held, confirm, settled,
                    done = std::move(done)](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection) {
      settled();
      return done(connection.error());
    }
    proto::GroupRequest request;
    request.set_group_id(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::RemoveGroup, request, 60'000'000,
              [this, id, held, confirm, settled, done](Result<proto::Empty> reply) {
                assert_locked();
                if (!reply && may_recover(reply.error().code) && !parts_.shared.stopping)
                  return send_removal(id, held, confirm, confirm ? done : [](const Status&) {});
                settled();
                if (confirm) done(reply ? Status() : Status(reply.error()));
              });
    if (!confirm) done({});
  });
}

Waited Groups::wait(WorkerLock& lock, const GroupId& id, int64_t deadline_us) {
  // How long a wait whose deadline has passed waits for the first news of the group: a deadline of
  // now means to look, which takes an answer of the head.
  constexpr int64_t kLookUs = 1'000'000;
  use(id);
  auto settled = [&] {
    assert_locked();
    return parts_.shared.stopping || view_.created(id) || view_.removed(id);
  };
  Waited waited = parts_.pump.wait_until(lock, deadline_us, settled, kLendsCpu);
  if (waited == Waited::kTimeout && !view_.heard_of(id) && !view_.owns(id))
    waited = parts_.pump.wait_until(
        lock, deadline_us + kLookUs,
        [&] {
          assert_locked();
          return settled() || view_.heard_of(id);
        },
        kLendsCpu);
  if (waited == Waited::kDone && !view_.created(id))
    waited = settled() ? Waited::kFailed : Waited::kTimeout;
  view_.unuse(id);
  view_.forget_if_unused(id);
  return waited;
}

void Groups::use(const GroupId& id) {
  const bool added = view_.watch(id);
  view_.use(id);
  if (added) subscribe({id});
}

void Groups::subscribe(const std::vector<GroupId>& ids) {
  parts_.head.with([this, ids](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    auto fail = [this, ids](const Error& why) {
      assert_locked();
      for (const GroupId& id : ids) {
        if (!view_.heard_of(id) && view_.lost(id, why.message)) changed(id);
      }
    };
    if (!connection) return fail(connection.error());
    proto::SubscribeRequest request;
    for (const GroupId& id : ids) request.add_group_ids(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
              [this, ids, fail](Result<proto::Empty> subscribed) {
                assert_locked();
                // After a lost connection head_is_back() subscribes again.
                if (!subscribed && may_recover(subscribed.error().code)) return;
                if (!subscribed) return fail(subscribed.error());
                // The states came before this answer.
                std::vector<GroupId> unheard;
                for (const GroupId& id : ids) {
                  if (view_.watches(id) && !view_.heard_of(id)) unheard.push_back(id);
                }
                if (!unheard.empty()) ask_later(std::move(unheard));
              });
  });
}

void Groups::head_is_back() {
  head_since_us_ = steady_now_us();
  std::vector<GroupId> others;
  for (const GroupId& id : view_.watched()) {
    auto own = own_.find(id);
    if (own == own_.end()) {
      others.push_back(id);
    } else if (std::exchange(own->second.answered, false)) {
      send_registration(id, [this, id](const Status& registered) {
        assert_locked();
        if (!registered) refused(id, registered.error());
      });
    }
  }
  if (others.empty()) return;
  subscribe(others);
  // A head that was started again may have lost what was not created yet, and its creator with it.
  std::erase_if(others, [this](const GroupId& id) {
    assert_locked();
    return !view_.heard_of(id);
  });
  ask_later(std::move(others));
}

void Groups::ask_later(std::vector<GroupId> ids) {
  constexpr int64_t kRegistrationUs = 1'000'000;
  std::erase_if(ids, [this](const GroupId& id) {
    assert_locked();
    return view_.created(id);
  });
  if (ids.empty()) return;
  parts_.shared.loop.run_after(kRegistrationUs, [this, ids = std::move(ids)] {
    assert_locked();
    // To a head that has just been started again, creators must first find back.
    if (!parts_.head.is_open() || steady_now_us() - head_since_us_ < kRegistrationUs)
      return ask_later(ids);
    for (const GroupId& id : ids) {
      if (view_.watches(id) && !view_.removed(id) && !view_.created(id)) ask(id);
    }
  });
}

void Groups::ask(const GroupId& id) {
  parts_.head.with([this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection) return;
    proto::GetGroupRequest request;
    request.set_group_id(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::GetGroup, request, 10'000'000,
              [this, id](Result<proto::GetGroupReply> reply) {
                assert_locked();
                if (reply && reply->found()) return update(reply->group());
                if (reply && !own_.contains(id) && view_.lost(id, kUnknown)) changed(id);
              });
  });
}

void Groups::update(const proto::GroupInfo& info) {
  if (!view_.update(info)) return;
  const GroupId id = GroupId::from_binary(info.spec().group_id());
  // From here on the head has it on disk.
  if (view_.created(id) || view_.removed(id)) own_.erase(id);
  changed(id);
}

void Groups::changed(const GroupId& id) {
  parts_.leases.submitter().group_moved(id);
  if (!view_.removed(id)) return;
  if (copies_.contains(id)) sweep_later();
  view_.forget_if_unused(id);
}

// Children of tasks that capture them.

const proto::TaskTemplate* Groups::caller() const {
  if (const auto* actor = parts_.execution.actor_spec()) return &actor->creation();
  const TaskId id = submitting_task();
  if (id.is_nil()) return nullptr;
  for (const ExecutingTaskImpl* task = parts_.execution.running(); task; task = task->next()) {
    if (task->id() == id) return &task->spec();
  }
  return nullptr;
}

GroupId Groups::capturer(const proto::TaskTemplate* caller, const proto::TaskTemplate& child) {
  const bool captured = caller && caller->captures_children() && child.group_id().empty() &&
                        !child.placed_explicitly() && GroupId::is_valid(caller->group_id());
  return captured ? GroupId::from_binary(caller->group_id()) : GroupId::nil();
}

const Template* Groups::for_submitter(const Template* function) {
  const GroupId group = capturer(caller(), function->spec);
  if (group.is_nil()) return function;
  std::unique_ptr<Template>& copy = copies_[group][function];
  if (!copy) {
    copy = std::make_unique<Template>();
    copy->spec = function->spec;
    move_into(&copy->spec, group);
    copy->serialized = copy->spec.SerializeAsString();
    copy->alone = function->alone;
    copy->captured_tasks = 0;
    copy->id = parts_.submission.take_template_number();
    use(group);
    copy->scheduling_class = parts_.leases.submitter().scheduling_class(copy->spec);
  }
  ++copy->captured_tasks;
  return copy.get();
}

void Groups::capture(proto::TaskTemplate* creation) {
  const GroupId group = capturer(caller(), *creation);
  if (!group.is_nil()) move_into(creation, group);
}

void Groups::task_ended(const Template& copy) {
  if (--copy.captured_tasks == 0 && view_.removed(GroupId::from_binary(copy.spec.group_id())))
    sweep_later();
}

// Not at once, because the submitter may be in the middle of something with the class of a copy.
void Groups::sweep_later() {
  constexpr int64_t kPauseUs = 100'000;
  if (std::exchange(sweep_timer_set_, true)) return;
  parts_.shared.loop.run_after(kPauseUs, [this] {
    assert_locked();
    sweep_timer_set_ = false;
    sweep();
  });
}

void Groups::sweep() {
  for (auto it = copies_.begin(); it != copies_.end();) {
    const GroupId group = it->first;
    Copies& copies = it->second;
    if (view_.removed(group)) {
      std::erase_if(copies, [this, &group](const auto& made) {
        assert_locked();
        const Template& copy = *made.second;
        if (copy.captured_tasks > 0) return false;
        parts_.leases.submitter().release(copy.scheduling_class);
        view_.unuse(group);
        return true;
      });
    }
    if (copies.empty()) view_.forget_if_unused(group);
    it = copies.empty() ? copies_.erase(it) : std::next(it);
  }
}

CurrentGroup Groups::current() const {
  const proto::TaskTemplate* task = caller();
  if (!task || !GroupId::is_valid(task->group_id())) return {};
  const int bundle =
      parts_.execution.actor() ? parts_.execution.actor()->bundle_index() : task->bundle_index();
  return {GroupId::from_binary(task->group_id()), bundle, task->captures_children()};
}

}  // namespace rt::worker
