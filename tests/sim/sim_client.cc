#include "tests/sim/sim_client.h"

#include <fmt/core.h>

#include "tests/sim/sim_head.h"

namespace rt::sim {
namespace {

constexpr int64_t kTimeoutUs = 30'000'000;

// Sets the flag of all jobs with the id of this one: a request names no more than the id.
void mark(JobLedger& jobs, size_t job, bool JobRecord::* flag) {
  for (size_t other = 0; other < jobs.all().size(); ++other) {
    if (jobs.record(other).plan.submission_id == jobs.record(job).plan.submission_id)
      jobs.record(other).*flag = true;
  }
}

}  // namespace

OwnerHead::Environment SimClient::head_environment() {
  OwnerHead::Environment out;
  out.connect = [this](OwnerHead::WithChannel done) {
    network_.connect(
        *this, kHeadHost, "client at head", [this] { return listening_head(world_); },
        std::move(done));
  };
  out.ring_by = [this](Alarm& alarm, int64_t at_us, std::function<void()> ring) {
    ring_by(alarm, at_us, "head again", std::move(ring));
  };
  out.opened = [] {};
  out.needed = [] { return false; };
  out.renewed = [] {};
  return out;
}

template <class T>
void SimClient::ask(const char* what, std::function<void(HeadRecords&, Answer<T>)> serve,
                    Answer<T> done) {
  head_.with([what, serve = std::move(serve), done = std::move(done)](Result<ChannelPtr> head) {
    if (!head) return done(head.error());
    (*head)->call<T>(
        what,
        [serve](Channel& at, Answer<T> answer) { serve(head_at(at).records(), std::move(answer)); },
        done, kTimeoutUs);
  });
}

// ---- data

void SimClient::put(const std::string& ns, const std::string& key, const std::string& value,
                    bool overwrite, const JobId& job) {
  proto::KvPutRequest request;
  request.set_ns(ns);
  request.set_key(key);
  request.set_value(value);
  request.set_overwrite(overwrite);
  if (!job.is_nil()) request.set_job_id(job.binary());
  const KvLedger::Op op =
      world_.values.put(head::kv_key(ns, key), value, overwrite, job, clock_.now_us());
  ask<proto::KvPutReply>(
      "put",
      [request](HeadRecords& head, Answer<proto::KvPutReply> answer) {
        head.kv_put(request, answer);
      },
      [this, op](const Result<proto::KvPutReply>& reply) {
        world_.values.answered(op, reply, clock_.now_us());
      });
}

void SimClient::erase(const std::string& ns, const std::string& key) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  const KvLedger::Op op = world_.values.erase(head::kv_key(ns, key), clock_.now_us());
  ask<proto::KvPutReply>(
      "delete",
      [request](HeadRecords& head, Answer<proto::KvPutReply> answer) {
        head.kv_delete(request, answer);
      },
      [this, op](const Result<proto::KvPutReply>& reply) {
        world_.values.answered(op, reply, clock_.now_us());
      });
}

void SimClient::get(const std::string& ns, const std::string& key, bool data) {
  proto::KvGetRequest request;
  request.set_ns(ns);
  request.set_key(key);
  ask<proto::KvGetReply>(
      "get",
      [request](HeadRecords& head, Answer<proto::KvGetReply> answer) {
        head.kv_get(request, answer);
      },
      [this, key = head::kv_key(ns, key), data,
       asked_us = clock_.now_us()](const Result<proto::KvGetReply>& reply) {
        if (!reply || !data) return;
        world_.values.check_read(key, reply->found() ? std::optional(reply->value()) : std::nullopt,
                                 asked_us);
      });
}

void SimClient::list(const std::string& ns, const std::string& prefix) {
  proto::KvListRequest request;
  request.set_ns(ns);
  request.set_prefix(prefix);
  ask<proto::KvListReply>(
      "list",
      [request](HeadRecords& head, Answer<proto::KvListReply> answer) {
        head.kv_list(request, answer);
      },
      [](const Result<proto::KvListReply>&) {});
}

// ---- packages

void SimClient::upload(const Package& package) {
  proto::KvGetRequest request;
  request.set_ns(head::Packages::kNamespace);
  request.set_key(package.name);
  ask<proto::KvGetReply>(
      "has package",
      [request](HeadRecords& head, Answer<proto::KvGetReply> answer) {
        head.kv_get(request, answer);
      },
      [this, package](const Result<proto::KvGetReply>& reply) {
        if (reply && !reply->found()) send_piece(package, 0);
      });
}

// The name follows the last piece: where it is, all pieces are.
void SimClient::send_piece(const Package& package, int piece) {
  const bool last = piece == package.pieces;
  proto::KvPutRequest request;
  request.set_ns(head::Packages::kNamespace);
  request.set_key(last ? package.name : fmt::format("{}#{}", package.name, piece));
  request.set_value(last ? std::to_string(package.pieces)
                         : std::string(static_cast<size_t>(package.piece_bytes), 'x'));
  request.set_overwrite(true);
  if (!package.job.is_nil()) request.set_job_id(package.job.binary());
  const KvLedger::Op op = world_.values.put(head::kv_key(request.ns(), request.key()),
                                            request.value(), true, package.job, clock_.now_us());
  ask<proto::KvPutReply>(
      "piece",
      [request](HeadRecords& head, Answer<proto::KvPutReply> answer) {
        head.kv_put(request, answer);
      },
      [this, package, piece, op, last](const Result<proto::KvPutReply>& reply) {
        world_.values.answered(op, reply, clock_.now_us());
        if (reply && !last) send_piece(package, piece + 1);
      });
}

// ---- jobs

void SimClient::submit(JobPlan plan, const ResourceSet& resources) {
  proto::SubmitJobRequest request;
  request.set_submission_id(plan.submission_id);
  if (!plan.package.empty())
    request.set_runtime_env_json(fmt::format("{{\"working_dir\": \"gcs://{}\"}}", plan.package));
  if (!resources.empty()) resources.to_proto(request.mutable_entrypoint_resources());
  const size_t job = world_.jobs.submitted(std::move(plan));
  request.set_entrypoint(JobLedger::entrypoint(job));
  ask<proto::SubmitJobReply>(
      "submit job",
      [request](HeadRecords& head, Answer<proto::SubmitJobReply> answer) {
        head.submit_job(request, answer);
      },
      [this, job](const Result<proto::SubmitJobReply>& reply) {
        world_.jobs.submit_answered(job, reply ? Status() : Status(reply.error()));
      });
}

void SimClient::look_at(size_t job) {
  const JobRecord& known = world_.jobs.record(job);
  const bool was_deleted = known.deleted;
  const bool was_there = known.submission == JobRecord::Answer::kDone;
  ask<proto::SubmittedJob>(
      "get job",
      [id = known.plan.submission_id](HeadRecords& head, Answer<proto::SubmittedJob> answer) {
        head.get_job(id, answer);
      },
      [this, job, was_deleted, was_there](const Result<proto::SubmittedJob>& shown) {
        if (!shown && may_recover(shown.error().code)) return;
        world_.jobs.check_shown(job, shown ? &*shown : nullptr, was_deleted, was_there);
      });
}

void SimClient::stop(size_t job) {
  const JobRecord& known = world_.jobs.record(job);
  mark(world_.jobs, job, &JobRecord::stop_asked);
  ask<proto::StopJobReply>(
      "stop job",
      [id = known.plan.submission_id](HeadRecords& head, Answer<proto::StopJobReply> answer) {
        head.stop_job(id, answer);
      },
      [this, job](const Result<proto::StopJobReply>& reply) {
        world_.jobs.stop_answered(job, reply);
      });
}

void SimClient::remove(size_t job) {
  const JobRecord& known = world_.jobs.record(job);
  mark(world_.jobs, job, &JobRecord::deletion_asked);
  ask<proto::Empty>(
      "delete job",
      [id = known.plan.submission_id](HeadRecords& head, Answer<proto::Empty> answer) {
        head.delete_job(id, answer);
      },
      [this, job](const Result<proto::Empty>& reply) {
        world_.jobs.delete_answered(job, reply ? Status() : Status(reply.error()));
      });
}

}  // namespace rt::sim
