"""Wrong decisions in the cores of processes that own tasks and objects, or execute tasks."""

from plant import WORKER, Plant

OWNER_PLANTS = [
    # ---- owners
    Plant(
        "Submitter",
        "the death of a worker does not use up a retry",
        WORKER + "submitter.cc",
        """if (task->retries_left > 0) --task->retries_left;
    task->count_attempt();
    task->suspect = true;""",
        "task->count_attempt(); task->suspect = true;",
    ),
    Plant(
        "pipelining",
        "a task that was lost behind another one is not sent alone",
        WORKER + "pipelining.cc",
        "task.suspect || task.retries_left == 0",
        "task.retries_left == 0",
    ),
    Plant(
        "SchedulingClass",
        "tasks with different resources share leases",
        WORKER + "scheduling_class.cc",
        "ResourceSet::from_proto(spec.resources()).to_string()",
        "std::string()",
    ),
    Plant(
        "GroupDemand",
        "a node that has lost the bundle is not told that nothing is wanted of it",
        WORKER + "group_demand.cc",
        "for (const auto& [node, told] : sent_) out.push_back({node, 0});",
    ),
    Plant(
        "GroupView",
        "news that are not newer bring a group back",
        WORKER + "group_view.cc",
        "info.version() <= group.info.version() || group.info.state() == proto::GROUP_REMOVED",
        "false",
    ),
    Plant(
        "Submitter",
        "a redirect of a leaving node to the local one is taken for a node of its own",
        WORKER + "submitter.cc",
        "if (node.is_nil()) return update_demand(c);",
    ),
    Plant(
        "ActorCalls",
        "an actor that another process may be making is waited for without end",
        WORKER + "actor_calls.cc",
        "now.steady_us - actor->unknown_since_us < settings_.node_timeout_ms * 1000",
        "true",
    ),
    Plant(
        "ActorCalls",
        "calls that are sent again come in the opposite order",
        WORKER + "actor_calls.cc",
        """for (auto task = again.rbegin(); task != again.rend(); ++task)
    actor.lanes[(*task)->lane].queue.push_front(*task);""",
        "for (Task* task : again) actor.lanes[task->lane].queue.push_front(task);",
    ),
    Plant(
        "GeneratorStream",
        "an attempt that is repeated may send items again",
        WORKER + "generator_stream.cc",
        "ended_ || index != received_ || index >= kMaxItems",
        "ended_ || index >= kMaxItems",
    ),
    Plant(
        "GeneratorStream",
        "a producer that may wait is not told that an item was taken",
        WORKER + "generator_stream.cc",
        "!may_wait && 2 * static_cast<int64_t>(taken - acknowledged_) < limit",
        "2 * static_cast<int64_t>(taken - acknowledged_) < limit",
    ),
    Plant(
        "RefTable",
        "a borrower returns what it was lent before its owner has heard of the borrow",
        WORKER + "ref_table.cc",
        """if (unconfirmed_.empty())
    return sink_.remove_borrower(*details.owner, entry.id, details.borrow.lent);""",
        "return sink_.remove_borrower(*details.owner, entry.id, details.borrow.lent);",
    ),
    Plant(
        "FrameLines",
        "a reply leaves before the borrows that were registered before it are known",
        WORKER + "frame_lines.h",
        "refs.confirmed(frame.after)",
        "true",
    ),
    Plant(
        "Submitter",
        "an error that is to be retried uses up no retry",
        WORKER + "submitter.cc",
        "cost == Cost::kRetry && task->retries_left > 0",
        "false",
    ),
    Plant(
        "Submitter",
        "a cancelled task that comes back unstarted is sent again",
        WORKER + "submitter.cc",
        """if (task->cancelled) {
    fail_cancelled(task);
  } else if (!started && c.group && c.group->removed()) {
    --pending_;
    sink_.fail_task(task, group_removed_error(*task));
  } else {
    c.queue.push_front(task);
  }""",
        "c.queue.push_front(task);",
    ),
    Plant(
        "Submitter",
        "idle leases that are to go back at once stay for their time",
        WORKER + "submitter.cc",
        "lease->state != Lease::State::kBroken && lease->in_flight.empty() && c->queue.empty()",
        "false",
    ),
    Plant(
        "Submitter",
        "a lease that its node wants back stays when its last task is retried",
        WORKER + "submitter.cc",
        """if (lease->in_flight.empty()) {
    lease->idle_since_us = now.steady_us;
    if (lease->revoked) drop_lease(*lease, false);
  }
  task->count_attempt();""",
        "task->count_attempt();",
    ),
    Plant(
        "ActorCalls",
        "an error that is to be retried uses up no retry",
        WORKER + "actor_calls.cc",
        """remove_in_flight(actor, task);
  task->count_attempt();
  if (task->retries_left > 0) --task->retries_left;""",
        "remove_in_flight(actor, task);",
    ),
    Plant(
        "ActorCalls",
        "a call that was cancelled on its way is sent again",
        WORKER + "actor_calls.cc",
        """task->cancelled = true;
  return actor.state == ActorLink::State::kAlive;""",
        "return actor.state == ActorLink::State::kAlive;",
    ),
    Plant(
        "RefTable",
        "what a borrower that is gone has borrowed is kept for it",
        WORKER + "ref_table.cc",
        "for (ObjectEntry* entry : touched) consider(entry);",
    ),
    Plant(
        "RefTable",
        "what is lent to a borrower that has died is kept for it",
        WORKER + "ref_table.cc",
        "if (dead_.contains(borrower)) return true;",
    ),
    Plant(
        "locality",
        "an argument that a task has twice counts twice",
        WORKER + "locality.cc",
        "args.erase(std::unique(args.begin(), args.end()), args.end());",
    ),
    Plant(
        "locality",
        "a task may come back to a store that can never hold its arguments",
        WORKER + "locality.cc",
        "places.total <= store_bytes",
        "true",
    ),
    Plant(
        "value_codec",
        "a damaged value may name a buffer beyond its end",
        WORKER + "value_codec.cc",
        "entry[1] > encoded.size() - entry[0]",
        "false",
    ),
    Plant(
        "runtime_env",
        "the variables of a task replace all those of its job",
        WORKER + "runtime_env.cc",
        "merged[name].update(value);",
        "merged[name] = value;",
    ),
    Plant(
        "HeadContact",
        "a driver that waits for a head that is away does not try again",
        WORKER + "head_contact.cc",
        "due_us_ = now.steady_us + kPauseUs;",
    ),
    Plant(
        "HeadContact",
        "the head is not asked again to tell of actors over a new connection",
        WORKER + "head_contact.cc",
        "for (const ActorId& id : actors_) all.add_actor_ids(id.binary());",
    ),
    Plant(
        "CallGroups",
        "a group may run one call more than its limit",
        WORKER + "call_groups.h",
        "static_cast<size_t>(limit - running)",
        "static_cast<size_t>(limit + 1 - running)",
    ),
    # ---- a process that executes tasks
    Plant(
        "TaskLine",
        "a call to an actor overtakes an earlier one that has not got its arguments",
        WORKER + "task_line.cc",
        "if (is_plain_actor()) held_up.push_back(caller);",
    ),
    Plant(
        "TaskLine",
        "the tasks of a connection that has closed stay in the line",
        WORKER + "task_line.cc",
        "if (task->caller != &caller) return false;",
        "return false;",
    ),
    Plant(
        "TaskLine",
        "the calls behind a blocked one keep their arguments",
        WORKER + "task_line.cc",
        "give_up(*task);",
    ),
    Plant(
        "Leaving",
        "a process leaves although others need what it owns",
        WORKER + "leaving.cc",
        "return line_.is_actor() || !sink_.is_needed();",
        "return true;",
    ),
    Plant(
        "Leaving",
        "a process leaves although it holds replies",
        WORKER + "leaving.cc",
        "line_.running() > 0 || !line_.empty() || sink_.holds_replies()",
        "line_.running() > 0 || !line_.empty()",
    ),
    Plant(
        "Leaving",
        "a process runs a function once more than max_calls allows",
        WORKER + "leaving.h",
        "++calls < max_calls",
        "++calls <= max_calls",
    ),
    Plant(
        "Leaving",
        "an actor that has left runs the calls that wait",
        WORKER + "leaving.cc",
        "line_.refuse_calls();",
    ),
]
