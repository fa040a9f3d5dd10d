"""Wrong decisions, one for each core, that the simulator has to find (run.py builds it with them
and runs it).

A plant replaces one text of a source, which must occur there once, by another. A text that ends
with a semicolon or a brace consists of whole statements, any other one is an expression. Both are
compiled, and the environment decides while the program runs which of them counts.
"""

from plant import (
    HEAD,
    NODE,
    SCHEDULING,
    STORE,
    Plant,
)
from owner_plants import OWNER_PLANTS
from record_plants import RECORD_PLANTS

PLANTS = [
    # ---- the node-manager
    Plant(
        "NodeCore",
        "the CPU of a blocked actor or task in a bundle is lent to the node",
        NODE + "node_core_workers.cc",
        "rooms_.change(worker->room).lend(cpu);",
        "rooms_.change(RoomKey()).lend(cpu);",
    ),
    Plant(
        "Leases",
        "the workers of an owner that ended are given to others although they still run its tasks",
        NODE + "leases.cc",
        """node_.workers.dismiss(*node_.workers.pool().find(queue_.find_lease(id)->worker),
                          proto::ExitInfo::OWNER_DIED, "the process that owned its task ended",
                          now);""",
        "end(id, true, now);",
    ),
    Plant(
        "LeaseQueue",
        "grants that the owner has not heard of yet do not count against its demand",
        NODE + "lease_queue.cc",
        "for (const auto& [number, leases] : demand.unacknowledged_answers) want -= leases;",
    ),
    Plant(
        "LeaseRound",
        "a lease goes to the node of the room, not to the room in which its demand waits",
        NODE + "lease_round.cc",
        "worker.room = plan.key;",
        "worker.room = RoomKey();",
    ),
    Plant(
        "LeaseRound",
        "a starved demand waits here even if actors and groups hold all that it needs",
        NODE + "lease_round.cc",
        "demand.no_spill || waited_us < starved_after_us()",
        "true",
    ),
    Plant(
        "Revocation",
        "a lease counts as revoked, and its owner is not asked to give it back",
        NODE + "revocation.cc",
        "node_.sink.revoke(lease->owner, message);",
    ),
    Plant(
        "Reservation",
        "what a starved demand lacks is kept from all others for ever (rule 2)",
        NODE + "reservation.cc",
        "(waited_us - begin) * 2 < begin",
        "true",
    ),
    Plant(
        "Workers",
        "a process that does not follow the request to end is not killed",
        NODE + "workers.cc",
        "worker->dismissed && !worker->forced && age > grace",
        "false",
    ),
    Plant(
        "WorkerPool",
        "a worker that has run tasks of one job is given to another job",
        NODE + "worker_pool.cc",
        "worker->job == job && worker->outlives_job == outlives_job",
        "true",
    ),
    Plant(
        "WorkerStarts",
        "after a failed start there is never another one",
        NODE + "worker_starts.cc",
        "it != backoffs_.end() && now.steady_us < it->second.not_before_us",
        "it != backoffs_.end()",
    ),
    Plant(
        "NodeCore",
        "the workers of an actor that has outlived its driver stay when it has ended",
        NODE + "node_core_workers.cc",
        """job_finished(job, now);
  workers_.dismiss_all_of(job, true, now);""",
        "job_finished(job, now);",
    ),
    Plant(
        "HostedActors",
        "an actor that fails before it has a worker keeps its room",
        NODE + "hosted_actors.cc",
        "node_.rooms.change(actor.room).give_back(actor.placement, actor.gpus);",
    ),
    Plant(
        "ActorEnds",
        "how an actor ended is forgotten, so that a repeated request starts it again",
        NODE + "actor_ends.cc",
        "it == ends_.end() ? nullptr : &it->second",
        "nullptr",
    ),
    Plant(
        "BundleDesk",
        "the room of a bundle is given back before its workers are reaped",
        NODE + "bundle_desk.cc",
        "if (worker->room == room) return;",
    ),
    Plant(
        "BundleLine",
        "what is kept for bundles that wait is kept for ever",
        NODE + "bundle_desk.cc",
        "line.clear_aside();\n  if (line.empty()) return;",
        "if (line.empty()) return;",
    ),
    Plant(
        "Bundles",
        "a demand is granted in a bundle that is being given back",
        NODE + "bundles.cc",
        "!bundle.returning && bundle.epoch <= newest_epoch && bundle.room.feasible(request)",
        "bundle.epoch <= newest_epoch && bundle.room.feasible(request)",
    ),
    Plant(
        "GpuPool",
        "a part of a GPU is always one of the first device",
        NODE + "gpu_pool.cc",
        "take_of(pick(units), units)",
        "take_of(0, units)",
    ),
    Plant(
        "Room",
        "the devices of a request are not looked at",
        NODE + "room.cc",
        'return gpus_.empty() || gpus_.fits(request.units("GPU"));',
        "return true;",
    ),
    Plant(
        "WorkEnds",
        "a bundle stays when the last process in it has ended",
        NODE + "work_ends.cc",
        "node_.bundle_desk.vacated(room);",
    ),
    Plant(
        "ClusterView",
        "nodes that are dead are still candidates",
        NODE + "cluster_view.cc",
        "!node.alive()",
        "false",
    ),
    Plant(
        "ExitWaits",
        "who asks how a worker ends is not told when it has ended",
        NODE + "exit_waits.cc",
        "for (const auto& [number, question] : waiting.mapped()) question.answer(reply);",
    ),
    Plant(
        "HeadCalls",
        "the answer to a repeated request of the head goes to the first one only",
        NODE + "head_calls.cc",
        "for (const auto& answer : waiting.mapped()) heard |= answer(reply);",
        "heard |= waiting.mapped().front()(reply);",
    ),
    Plant(
        "HeadQueue",
        "what a lost head has not confirmed is not sent to the next one",
        NODE + "head_queue.cc",
        "if (*alive && !delivered) keep(number, request);",
    ),
    Plant(
        "HeadSession",
        "a node whose head is away does not try again",
        NODE + "head_session.cc",
        "due_us_ = now.steady_us + pause_us_;",
    ),
    Plant(
        "AdmissionDesk",
        "whoever comes before the node has joined its cluster waits for ever",
        NODE + "admission_desk.h",
        "open_ = true;",
    ),
    Plant(
        "DeathNews",
        "the store is not told of workers that have died",
        NODE + "death_news.cc",
        "*told.store.mutable_worker_ids() = dead;",
    ),
    Plant(
        "ClusterNews",
        "a job goes on here although its driver has left another node",
        NODE + "cluster_news.cc",
        "for (const std::string& id : event.finished_jobs()) job_finished(JobId::from_binary(id));",
    ),
    Plant(
        "ClusterNews",
        "the store is not told that a driver has left",
        NODE + "cluster_news.cc",
        "gone.add_worker_ids(driver_worker_id(job).binary());",
    ),
    Plant(
        "Membership",
        "a node that was declared dead goes on",
        NODE + "membership.cc",
        "is_me && !node.alive()",
        "false",
    ),
    Plant(
        "DrainWatch",
        "a node that was asked to leave does so at once, whatever runs on it",
        NODE + "drain_watch.cc",
        "late || core_.view().busy_with().empty()",
        "true",
    ),
    Plant(
        "DrainWatch",
        "the deadline of a request to leave has no effect",
        NODE + "drain_watch.cc",
        "deadline_us_ > 0 && now.steady_us >= deadline_us_",
        "false",
    ),
    Plant(
        "ReportPace",
        "a node without changes sends no heartbeats",
        NODE + "report_pace.cc",
        "!is_planned() && now.steady_us - last_us_ >= heartbeat_us_ / 2",
        "false",
    ),
    Plant(
        "registration",
        "a node that comes back does not name the bundles that it holds",
        NODE + "registration.cc",
        "core.view().bundles().fill(request->mutable_bundles());",
    ),
    Plant(
        "registration",
        "a node that comes back does not name the actors that it is starting",
        NODE + "registration.cc",
        "!actor.worker.is_nil() && (!worker || worker->state != WorkerState::kActor)",
        "actor.state != HostedActor::State::kAlive || worker->state != WorkerState::kActor",
    ),
    Plant(
        "HeadQueue",
        "a refusal of a start that nobody heard is told to the head of the next registration",
        NODE + "head_queue.cc",
        "std::erase_if(waiting_, [](const auto& entry) { return entry.second.registration.has_value(); });",
    ),
    Plant(
        "DriverJobs",
        "a job whose driver left before the head had begun it is not finished",
        NODE + "driver_jobs.cc",
        "asking_.erase(driver) > 0 ? JobId::nil() : job",
        "(asking_.erase(driver), JobId::nil())",
    ),
    Plant(
        "StoreWatch",
        "a store that does not answer is never said to hang",
        NODE + "store_watch.cc",
        "open_ && !hangs_ && now.steady_us - asked_.steady_us >= limit_us_",
        "false",
    ),
    Plant(
        "StoreWaits",
        "a driver is told at each look that its tasks wait for room",
        NODE + "store_waits.cc",
        "if (!told_.emplace(job, now.steady_us).second) continue;",
        "told_.emplace(job, now.steady_us);",
    ),
    Plant(
        "MetricsTable",
        "of the processes that have ended only the first one counts",
        NODE + "metrics_table.cc",
        "add(series, &it->second.series);",
    ),
    # ---- the head
    Plant(
        "HeadCore",
        "a driver that ended while its node was away is taken for alive",
        HEAD + "head_core.cc",
        "if (!connected.contains(job)) consequences_.end_job(job, now);",
    ),
    Plant(
        "Cluster",
        "a node that was declared dead may register again",
        HEAD + "cluster.cc",
        "known && !known->alive()",
        "false",
    ),
    Plant(
        "ActorManager",
        "an actor is started once more than its restarts allow",
        HEAD + "actor_manager_lives.cc",
        "limit < 0 || actor.info.num_restarts() < limit",
        "limit < 0 || actor.info.num_restarts() <= limit",
    ),
    Plant(
        "ActorManager",
        "an actor that is started again keeps its epoch",
        HEAD + "actor_manager_lives.cc",
        "std::max(actor.info.epoch() + 1, actor.least_epoch)",
        "std::max(actor.info.epoch(), actor.least_epoch)",
    ),
    Plant(
        "ActorDirectory",
        "the actors of a placement group are not found when it is removed",
        HEAD + "actors.cc",
        "if (actor.seat.group) set_index(by_group_, *actor.seat.group, actor.id, add);",
    ),
    Plant(
        "ActorPlacement",
        "an actor whose group was removed waits on",
        HEAD + "actor_placement.cc",
        "!group || group->removed()",
        "!group",
    ),
    Plant(
        "GroupManager",
        "after a refusal the bundles on the other nodes are not given back",
        HEAD + "group_manager_placement.cc",
        "give_back(env_.sink, env_.cluster, id, {group.id, attempt.epoch, part.indexes}, exit);",
    ),
    Plant(
        "GroupDirectory",
        "a group counts as held as soon as one of its nodes has reserved its part",
        HEAD + "groups.cc",
        "std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.second.held; })",
        "std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.second.held; })",
    ),
    Plant(
        "BundleSeats",
        "the room that actors have in a bundle counts as free",
        HEAD + "bundle_seats.cc",
        "room.subtract_allowing_debt(at->second.used);",
    ),
    Plant(
        "GoneGroups",
        "a head does not remember the groups that were removed before it started",
        HEAD + "gone_groups.cc",
        """ids_.add(id);
  keep(id);""",
    ),
    Plant(
        "Jobs",
        "the end of a job is not written to the disk",
        HEAD + "jobs.cc",
        """finished_.push_back(it->first);
  journal_.put(table::kJobs, id.binary(), it->second.SerializeAsString());""",
        "finished_.push_back(it->first);",
    ),
    Plant(
        "Journal",
        "a request is answered before its record is on the disk",
        HEAD + "journal.cc",
        """entry.continuations = std::move(due);
  for (const auto& [key, index] : position_) entry.keys.push_back(key);
  Batch batch;
  batch.swap(batch_);
  position_.clear();
  sink_.persist(last_id_, std::move(batch));
  return {};""",
        """for (const auto& [key, index] : position_) entry.keys.push_back(key);
  Batch batch;
  batch.swap(batch_);
  position_.clear();
  sink_.persist(last_id_, std::move(batch));
  return due;""",
    ),
    Plant(
        "Journal",
        "records that the disk refused are not written again",
        HEAD + "journal.cc",
        "if (!status) dirty_.insert(it->second.keys.begin(), it->second.keys.end());",
    ),
    Plant(
        "Subscriptions",
        "news of an actor reach only the first of its subscribers",
        HEAD + "subscriptions.cc",
        """*event.add_actors() = info;
  for (ConnId conn : it->second) sink_.push(conn, event);""",
        """*event.add_actors() = info;
  sink_.push(*it->second.begin(), event);""",
    ),
    # ---- the object store
    Plant(
        "StoreCore",
        "objects that a client held stay pinned when it ends",
        STORE + "store_core.cc",
        "for (auto& [object_id, count] : pins) unpin(client, object_id, count);",
    ),
    Plant(
        "ArgumentLine",
        "blocked tasks count as tasks that will give room back",
        STORE + "argument_line.cc",
        "held_[client].blocked = blocked;",
    ),
    Plant(
        "StoreCore, arguments",
        "what fits behind the first in line is never admitted",
        STORE + "store_arguments.cc",
        "if (room_will_come(entry->bytes)) break;",
        "break;",
    ),
    Plant(
        "StoreCore, room",
        "copies are not evicted for others",
        STORE + "room.cc",
        "is_extent ? nullptr : objects_.oldest_evictable()",
        "nullptr",
    ),
    Plant(
        "Extents",
        "a client may put an object into an extent over the one before it",
        STORE + "extents.cc",
        "std::prev(next)->second->room.end() > room.offset",
        "false",
    ),
    Plant(
        "EarlyFrees",
        "a free that comes before its object has no effect",
        STORE + "early_frees.cc",
        "if (it == object_at_.end()) return false;",
        "return false;",
    ),
    Plant(
        "GoneOwners",
        "what a task stores for an owner that has ended stays",
        STORE + "gone_owners.h",
        "workers_.contains(owner)",
        "false",
    ),
    Plant(
        "HeldCalls",
        "a transfer ends with the store that has asked for it, and keeps its pin",
        STORE + "held_calls.h",
        "it->second.client != client || !it->second.pulled.is_nil()",
        "it->second.client != client",
    ),
    Plant(
        "StoreCore, room",
        "who waits is not served with the room of a client that has ended",
        STORE + "room.cc",
        "if (!demand.ranges.empty()) freed_ = true;",
    ),
    Plant(
        "Allocator",
        "a range that is given back is not joined with the one before it",
        STORE + "allocator.cc",
        "previous->first + previous->second == range.offset",
        "false",
    ),
    Plant(
        "Getters",
        "a request that waits for an object is forgotten when another one for it is answered",
        STORE + "getters.cc",
        """if (it->second.request == place.request && it->second.item == place.item) {
      waiting_.erase(it);
      break;
    }""",
        """waiting_.erase(it);
      break;""",
    ),
    Plant(
        "ObjectTable",
        "an object that is in use may be evicted",
        STORE + "object_table.cc",
        """object->pins++;
  update_evictable(object);""",
        "object->pins++;",
    ),
    Plant(
        "Fetches",
        "the room of a copy is given up while another node reads from it",
        STORE + "fetches.cc",
        "fetch.step != Step::kFinished || fetch.calls > 0 || fetch.serving > 0",
        "fetch.step != Step::kFinished",
    ),
    Plant(
        "Fetches",
        "a piece is sent to another node before it has arrived",
        STORE + "fetches.cc",
        "if (!fetch.chunks.has(reader.range)) return false;",
    ),
    Plant(
        "Fetches",
        "a connection over which nothing comes any more stays open",
        STORE + "fetches.cc",
        """sink_.close(fetch.number,
                  make_error(Code::kTimeout,
                             fmt::format("no progress for {} ms", options_.no_progress_us / 1000)));""",
    ),
    Plant(
        "Fetches, sources",
        "a node that does not answer is not asked again",
        STORE + "source_line.h",
        "!may_answer_yet() || now.steady_us - heard_us_ >= patience_us",
        "true",
    ),
    Plant(
        "Fetches, queue",
        "all fetches are launched at once",
        STORE + "fetch_queue.cc",
        "bytes_ > 0 && bytes_ + hint > max_bytes_",
        "false",
    ),
    # ---- scheduling, which node-managers and the head share
    Plant(
        "the policies of nodes",
        "a task goes to a node that the search has excluded",
        SCHEDULING + "policy.cc",
        "if (lowest == kNoNode || fitting.first(lowest + 1) == kNoNode) return lowest;",
        "if (fitting.empty()) return nodes.all().first();",
    ),
    Plant(
        "BundleSearch",
        "STRICT_SPREAD is taken for SPREAD",
        SCHEDULING + "bundle_search.cc",
        "placed = strict_spread(eligible);",
        "placed = spread(eligible);",
    ),
    *OWNER_PLANTS,
    *RECORD_PLANTS,
]
