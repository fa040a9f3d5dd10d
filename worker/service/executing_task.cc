#include "worker/service/executing_task.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "worker/core/death.h"
#include "worker/core/value_codec.h"
#include "worker/service/current_task.h"
#include "worker/service/objects.h"

namespace rt::worker {

// A result of up to so many bytes becomes a reply in less time than the clock resolves.
constexpr size_t kStoredAtOnce = 1024;

ExecutingTaskImpl::ExecutingTaskImpl(const Parts& parts, std::shared_ptr<IncomingTask> task,
                                     int64_t start_us)
    : parts_(parts),
      task_(std::move(task)),
      loaded_(task_->function->ran && task_->without_arguments() &&
              !(parts.execution.actor() && is_concurrent(*parts.execution.actor_spec()))) {
  times_.start_us = start_us;
  next_ = parts.execution.running();
  if (next_) next_->previous_ = this;
  parts.execution.set_running(this);
}

void ExecutingTaskImpl::unlist() {
  if (parts_.execution.running() == this) parts_.execution.set_running(next_);
  if (next_) next_->previous_ = previous_;
  if (previous_) previous_->next_ = next_;
  next_ = previous_ = nullptr;
}

ExecutingTaskImpl::~ExecutingTaskImpl() {
  WorkerLock lock(parts_.shared.mutex);
  if (!reply_.begun() && !parts_.execution.departure().leaving().has_left()) {
    // A binding that lost the task is a bug, but the caller must not wait for ever.
    std::string error = encode_error(
        system_error(Code::kInternal, "the worker finished the task without a result"));
    begin_reply(wire::TaskStatus::kError, 1, wall_now_us());
    reply_.fail(std::move(error));
  }
  if (!parts_.shared.stopping) parts_.execution.send_reply(*this);
  unlist();
  // The references only queue their entries when dropped, so this is allowed under the lock.
  task_->args.clear();
  lent_.refs.clear();
}

void ExecutingTaskImpl::make_current() { t_current_task = this; }

std::vector<std::string> ExecutingTaskImpl::gpu_ids() const {
  if (const auto* actor = parts_.execution.actor())
    return {actor->gpu_ids().begin(), actor->gpu_ids().end()};
  WorkerLock lock(parts_.shared.mutex);
  return task_->link ? task_->link->gpu_ids : std::vector<std::string>();
}

const proto::JobConfig& ExecutingTaskImpl::job_config() const {
  // An actor stays with the job that made it, whoever calls.
  if (const auto* actor = parts_.execution.actor_spec()) return actor->job_config();
  // A connection that was made before its peer had got its first task, and with it a job, names no
  // job. The job is then the worker's own.
  if (task_->link && task_->link->job_config &&
      !JobId::from_binary(task_->link->job_config->job_id()).is_nil())
    return *task_->link->job_config;
  return parts_.shared.options.job_config;
}

bool ExecutingTaskImpl::started() {
  times_.started_us = loaded_ ? times_.start_us : wall_now_us();
  return progress_.start();
}
void ExecutingTaskImpl::executed() { times_.executed_us = wall_now_us(); }

void ExecutingTaskImpl::begin_reply(wire::TaskStatus status, size_t count, int64_t finished_us) {
  times_.finished_us = finished_us;
  if (times_.started_us == 0) times_.started_us = finished_us;
  if (times_.executed_us == 0) times_.executed_us = finished_us;
  reply_.begin(task_->seq, status, finished_us - times_.start_us, count);
}

// The receiver of a result counts as a borrower of the references inside from here on, so that
// those of this process may go.
void ExecutingTaskImpl::hold_for_receiver(std::span<const Ref> contained) {
  // A peer that is gone is never taken off the borrowers again.
  if (!task_->link || !task_->link->open) return;
  const WorkerId& receiver = task_->link->peer;
  for (const Ref& ref : contained) {
    auto& entry = entry_of(ref);
    if (entry.owned) {
      parts_.objects.refs().add_borrower(entry.id, receiver);
      continue;
    }
    lent_.refs.push_back(ref);
    if (entry.details().owner->worker_id() == receiver.view()) continue;
    auto& others = lent_.third_party;
    auto known = std::find_if(others.begin(), others.end(), [&](const auto& item) {
      return item.first.worker_id() == entry.details().owner->worker_id();
    });
    if (known == others.end()) known = others.insert(others.end(), {*entry.details().owner, {}});
    known->second.push_back(entry.id);
  }
}

namespace {

// A value on the wire that is in the frame itself.
void append_inline(std::string& out, const ValueParts& parts, std::string_view packed,
                   size_t size) {
  wire::Writer(out).fields(wire::ValuePlace::kInline, static_cast<uint32_t>(size));
  append_value(out, parts, packed, size);
}

}  // namespace

void ExecutingTaskImpl::append_return(WorkerLock& lock, std::string& out, const ValueParts& parts,
                                      uint32_t index) {
  std::string packed =
      parts.contained.empty() ? std::string() : parts_.objects.pack(parts.contained);
  size_t size = encoded_size(parts, packed.size());
  if (static_cast<int64_t>(size) <= parts_.shared.settings().max_inline_bytes &&
      out.size() + size <= wire::kMaxInlinedBytes) {
    hold_for_receiver(parts.contained);
    return append_inline(out, parts, packed, size);
  }
  wire::Writer writer(out);
  // The reply goes nowhere, and another attempt may be writing these very objects to the store.
  if (task_->link && !task_->link->open) return writer.inline_value({});
  const WorkerId owner = task_->link ? task_->link->peer : parts_.shared.context.worker_id;
  auto sealed = parts_.objects.write_to_store(lock, make_object_id(task_->id, index), owner, parts,
                                              packed, size);
  if (!sealed) {
    const std::string error = encode_error(system_error(
        sealed.error().code, fmt::format("The result ({} bytes) of {} cannot be stored: {}", size,
                                         spec().name(), sealed.error().message)));
    return writer.inline_value(error);
  }
  stored_.emplace_back(make_object_id(task_->id, index), std::move(sealed->view.keepalive));
  hold_for_receiver(parts.contained);
  writer.fields(wire::ValuePlace::kInStore, sealed->size, static_cast<uint32_t>(packed.size()));
  writer.bytes(packed);
}

// The store hears of the sealed objects before anybody can ask for them. What it believes to be
// reported, and is not because this process ends in between, it keeps until the owner ends.
HeldFrames::Lent ExecutingTaskImpl::take_lent() {
  if (!stored_.empty() && parts_.objects.store()) {
    for (const auto& [id, view] : stored_) parts_.objects.store()->owner_knows(id);
    stored_.clear();
    parts_.objects.store()->drain_releases();
    parts_.shared.loop.flush_all();
  }
  return std::exchange(lent_, {});
}

void ExecutingTaskImpl::finish(std::span<const ValueParts> returns) {
  if (times_.executed_us == 0) times_.executed_us = wall_now_us();
  bool plain = true, at_once = true;
  size_t total = 0;
  for (const ValueParts& parts : returns) {
    const size_t size = encoded_size(parts, 0);
    total += size;
    plain &= parts.contained.empty() &&
             static_cast<int64_t>(size) <= parts_.shared.settings().max_inline_bytes;
    at_once &= (parts.kind == ValueKind::kNone || parts.kind == ValueKind::kRaw) &&
               parts.inband.size() <= kStoredAtOnce;
  }
  // On the wire, each value is preceded by less than its own size.
  plain &= total <= wire::kMaxInlinedBytes / 2;
  begin_reply(wire::TaskStatus::kOk, returns.size(),
              plain && at_once ? times_.executed_us : wall_now_us());
  if (plain) {
    // Nothing of this is guarded by the mutex, and nothing is stored after the clock was read.
    for (const ValueParts& parts : returns)
      append_inline(reply_.bytes(), parts, {}, encoded_size(parts, 0));
    return;
  }
  WorkerLock lock(parts_.shared.mutex);
  uint32_t index = 1;
  for (const ValueParts& parts : returns) append_return(lock, reply_.bytes(), parts, index++);
  times_.finished_us = wall_now_us();
}

void ExecutingTaskImpl::fail(const ValueParts& error, bool retry) {
  begin_reply(retry ? wire::TaskStatus::kErrorRetry : wire::TaskStatus::kError, 1, wall_now_us());
  if (error.inband.size() > kMaxErrorBytes) {
    auto whole = decode_error(error.inband);
    return reply_.fail(encode_error(whole ? without_excess(std::move(*whole))
                                          : system_error(Code::kInternal, whole.error().message)));
  }
  reply_.fail(encode_plain(error));
}

void ExecutingTaskImpl::fail_encoded() {
  std::string error = encoded_dependency_error(
      as_bytes(task_->failure),
      {spec().function(), task_->id,
       parts_.execution.actor() ? parts_.execution.actor_spec()->actor_id() : "", getpid(),
       parts_.shared.context.node_ip});
  begin_reply(task_->found_no_room ? wire::TaskStatus::kNoRoom : wire::TaskStatus::kError, 1,
              wall_now_us());
  reply_.fail(std::move(error));
}

}  // namespace rt::worker
