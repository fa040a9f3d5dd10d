"""Wrong decisions about the records that the head keeps for its clients, and what goes with them:
key-value data, packages, submitted jobs, samples of metrics and lines of logs."""

from plant import HEAD, Plant

RECORD_PLANTS = [
    Plant(
        "Kv",
        "what a job has put is deleted with it although another one has put it as well",
        HEAD + "kv.cc",
        "if (state.jobs.empty()) state.value.reset();",
        "state = {};",
    ),
    Plant(
        "Kv",
        "a value that the disk refused is read all the same",
        HEAD + "kv.cc",
        "entry.shown = entry.committed;",
    ),
    Plant(
        "Kv",
        "what nobody keeps any more stays on the disk",
        HEAD + "kv.cc",
        "if (is_gone) write_value(key);",
    ),
    Plant(
        "Kv",
        "a job that puts what is there already does not keep it",
        HEAD + "kv.cc",
        "!replaces && !in_flight && next.jobs == jobs",
        "!replaces && !in_flight",
    ),
    Plant(
        "HeadCore",
        "what a job puts when it is over stays",
        HEAD + "head_core_requests.cc",
        "!parts_.jobs.running(job) && !parts_.actors.directory().any_of_job(job)",
        "false",
    ),
    Plant(
        "Packages",
        "a package that a job names makes room for another one",
        HEAD + "packages.cc",
        "name != mine && !package.of_jobs && !fresh && !in_use(name)",
        "name != mine && !package.of_jobs && !fresh",
    ),
    Plant(
        "Packages",
        "a package that has just been uploaded makes room for another one",
        HEAD + "packages.cc",
        "now.steady_us - package.uploaded_us < kJustUploadedUs",
        "false",
    ),
    Plant(
        "SubmittedJobs",
        "an entrypoint whose node is lost counts as running",
        HEAD + "submitted_jobs.cc",
        "job.node_id() != node.id.view() || terminal(job)",
        "true",
    ),
    Plant(
        "SubmittedJobs",
        "an entrypoint that its node has not any more counts as running",
        HEAD + "submitted_jobs.cc",
        "here && !here->contains(id)",
        "false",
    ),
    Plant(
        "SubmittedJobs",
        "a node is asked to start an entrypoint before the disk has the name of the node",
        HEAD + "submitted_jobs.cc",
        """assigning_.insert(job.submission_id());
  env_.journal.then([this, id = job.submission_id()](const Status& status, Now later) {
    assigned(id, status, later);
  });""",
        "send_start(job, *node);",
    ),
    Plant(
        "SubmittedJobs",
        "a job counts as stopped before the disk says so",
        HEAD + "submitted_jobs.cc",
        """return env_.journal.then([answer, reply = std::move(reply)](const Status& status, Now) {
      status ? reply(answer) : reply(status.error());
    });""",
        "return reply(std::move(answer));",
    ),
    Plant(
        "MetricsHistory",
        "the samples of nodes are kept without a bound",
        HEAD + "metrics_history.cc",
        "static_cast<int64_t>(node_rows_.size() * sizeof(NodeRow)) > max_bytes_ / 4 * 3",
        "false",
    ),
    Plant(
        "Subscriptions",
        "lines of a job go to whoever follows another one",
        HEAD + "subscriptions.cc",
        "JobId::is_valid(job) && it != by_job_.end() ? &it->second : nullptr",
        "by_job_.empty() ? nullptr : &by_job_.begin()->second",
    ),
]
