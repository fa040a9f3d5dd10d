#include "observability/state/history.h"

#include <algorithm>
#include <limits>

#include "common/proto/head.pb.h"
#include "observability/events/task_digest.h"

namespace rt::state {
namespace {

using HeadStub = proto::HeadService::Stub;

constexpr int64_t kPageBytes = 16 << 20;
// A task that a process reported as live may already be in a batch recorded before that, because
// the owner had not heard of its end; and clocks of nodes differ. Batches this much older than the
// question are therefore checked against the live tasks.
constexpr int64_t kOverlapUs = 5'000'000;
// Number of batches fetched with the first request, and at most with one. It grows from request to
// request: one batch usually has all the rows that fit into the limit.
constexpr size_t kFirstBatches = 2, kMostBatches = 64;

class Reading {
 public:
  Reading(Sources& sources, TaskQuery& query, HistoryNotes& notes)
      : sources_(sources), query_(query), notes_(notes) {}

  Status run(const std::string& job_id, int64_t live_asked_us) {
    // Live tasks may have ended meanwhile. The newest batches are then read whole, so that each
    // task is counted once.
    whole_from_us_ = query_.any_live_task_matches() ? live_asked_us - kOverlapUs
                                                    : std::numeric_limits<int64_t>::max();
    RT_TRY(scan(job_id));
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.max_us > b.max_us; });
    return fetch();
  }

 private:
  struct Candidate {
    int64_t row, max_us;
  };

  Status scan(const std::string& job_id) {
    proto::GetTaskEventsRequest request;
    request.set_max_bytes(kPageBytes);
    request.set_job_id(job_id);
    request.set_digests_only(!query_.needs_events() || query_.is_narrow());
    for (bool more = true; more;) {
      RT_ASSIGN(auto reply, sources_.ask_head(&HeadStub::GetTaskEvents, request));
      for (const auto& batch : reply.batches()) RT_TRY(look_at(batch));
      notes_.dropped = reply.dropped();
      more = reply.more() && reply.next_row() > request.after_row();
      request.set_after_row(reply.next_row());
    }
    return {};
  }

  Status look_at(const proto::TaskEventBatch& batch) {
    notes_.any |= batch.count() > 0;
    if (!batch.packed().empty()) return read_whole(batch);
    if (batch.max_time_us() >= whole_from_us_) return fetch_whole(batch.row());
    auto digest = unpack_task_digest(batch.digest());
    if (!digest) return fetch_whole(batch.row());
    if (query_.needs_events())
      return query_.may_match(*digest) ? fetch_whole(batch.row()) : Status();
    if (!query_.can_count(*digest)) return fetch_whole(batch.row());
    if (query_.count(*digest) > 0) candidates_.push_back({batch.row(), batch.max_time_us()});
    return {};
  }

  Status read_whole(const proto::TaskEventBatch& batch) {
    auto data = unpack_task_events(batch.packed());
    data ? query_.add_history(*data) : void(notes_.unreadable += batch.count());
    return {};
  }

  Status fetch_whole(int64_t row) {
    proto::GetTaskEventsRequest request;
    request.add_rows(row);
    RT_ASSIGN(auto reply, sources_.ask_head(&HeadStub::GetTaskEvents, request));
    for (const auto& batch : reply.batches()) RT_TRY(read_whole(batch));
    return {};
  }

  // Reads rows of the counted batches, the newest first, until the limit is filled.
  Status fetch() {
    size_t at_once = kFirstBatches;
    for (size_t next = 0;
         next < candidates_.size() && query_.may_keep_rows_ending_by(candidates_[next].max_us);) {
      proto::GetTaskEventsRequest request;
      request.set_max_bytes(kPageBytes);
      size_t end = std::min(candidates_.size(), next + at_once);
      for (size_t i = next; i < end; ++i) request.add_rows(candidates_[i].row);
      RT_ASSIGN(auto reply, sources_.ask_head(&HeadStub::GetTaskEvents, request));
      for (const auto& batch : reply.batches()) {
        auto data = unpack_task_events(batch.packed());
        data ? query_.take_rows(*data) : void(notes_.unreadable += batch.count());
      }
      // Batches that did not fit into the reply are requested again. Batches that the head has
      // removed since are silently missing from it.
      if (reply.more()) {
        while (next < end && candidates_[next].row != reply.next_row()) ++next;
        next = std::min(end, next + 1);
      } else {
        next = end;
      }
      at_once = std::min(kMostBatches, at_once * 4);
    }
    return {};
  }

  Sources& sources_;
  TaskQuery& query_;
  HistoryNotes& notes_;
  int64_t whole_from_us_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace

Status read_history(Sources& sources, const std::string& job_id, int64_t live_asked_us,
                    TaskQuery* query, HistoryNotes* notes) {
  const Status status = Reading(sources, *query, *notes).run(job_id, live_asked_us);
  if (status || status.error().code != Code::kTimeout) return status;
  sources.note_missing("the rest of the history of tasks", status.error());
  return {};
}

}  // namespace rt::state
