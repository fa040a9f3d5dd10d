#include "cli/terminal/examples.h"

namespace rt::cli {
namespace {

constexpr Example kExamples[] = {
    {"start", "start --head", "a cluster of this machine, in the background"},
    {"start", "start --address=10.0.0.1:6379",
     "this machine joins the cluster whose head is there"},
    {"start", "start --head --port=0 --num-cpus=2 --resources='{\"disk\": 1}' --block",
     "for a service manager: in the foreground, at any free port"},
    {"stop", "stop", "everything that was started on this machine, in an orderly way"},
    {"stop", "stop --force", "at once"},
    {"status", "status", "nodes, usage, what waits"},
    {"status", "status --watch --interval=5", "the same, refreshed in place"},
    {"status", "status --format=json", "for programs"},
    {"top", "top", "nodes, tasks by state and the busiest workers, until q"},
    {"top", "top --iterations=1 --sort=memory", "one page, for a log"},
    {"nodes", "nodes", "a line for each node"},
    {"nodes", "nodes --format=json", "what ray.nodes() returns"},
    {"cluster-resources", "cluster-resources --format=json",
     "what ray.cluster_resources() returns"},
    {"available-resources", "available-resources", "what is free now"},
    {"list", "list actors --filter state=ALIVE", "living actors"},
    {"list", "list tasks -f func_or_class_name=train -f state!=FINISHED --limit=1000 --detail",
     "all columns of what has not ended, as YAML"},
    {"list", "list placement-groups -f state=PENDING --detail",
     "the placement groups that wait, and why"},
    {"list", "list nodes --format=json", "for programs"},
    {"get", "get actors 7b2c06a1e0f7d3a5c0d6b6f201000000", "everything known of one actor"},
    {"summary", "summary tasks", "counts by function and state"},
    {"logs", "logs", "the log files of the head's node"},
    {"logs", "logs 'worker-*.err' --follow", "what workers of all nodes write to stderr"},
    {"logs cluster", "logs cluster 'raylet*' --node-ip=10.0.0.2 --tail=50",
     "the end of a file of another node"},
    {"logs actor", "logs actor 7b2c06a1e0f7d3a5c0d6b6f201000000 --follow", "what an actor prints"},
    {"logs worker", "logs worker 4711 --err", "what a process writes to stderr"},
    {"logs job", "logs job raysubmit_1 --follow", "what a job's entrypoint prints"},
    {"logs task", "logs task c8ef45ccd0112571ffffffffffffffffffffffff01000000",
     "just the lines of one task"},
    {"memory", "memory --units=MB --sort-by=OBJECT_SIZE", "which process refers to what"},
    {"memory", "memory --stats-only", "how full the object stores are"},
    {"timeline", "timeline -o trace.json", "for chrome://tracing or https://ui.perfetto.dev"},
    {"timeline", "timeline --job=nightly --last=5m -o trace.json",
     "the last five minutes of a submitted job"},
    {"metrics", "metrics", "what programs count, as a Prometheus would read it"},
    {"metrics launch-prometheus", "metrics launch-prometheus --port=9091",
     "its pages are on http://127.0.0.1:9091"},
    {"metrics shutdown-prometheus", "metrics shutdown-prometheus", "its data stay"},
    {"stack", "stack", "every thread of every worker and driver"},
    {"profile", "profile 4711 --duration=5", "where a process spends five seconds"},
    {"profile", "profile all --mode=cpu -o flames.svg", "a flame graph of time on processors"},
    {"job submit", "job submit -- python train.py --epochs 3",
     "runs it on the cluster and follows it"},
    {"job submit",
     "job submit --working-dir=. --no-wait --submission-id=nightly -- python train.py",
     "uploads this folder and returns at once"},
    {"job status", "job status nightly", "how it is doing"},
    {"job logs", "job logs nightly --follow", "its output, until it ends"},
    {"job list", "job list --format=table", "submitted jobs and drivers"},
    {"job stop", "job stop nightly", "ends it"},
    {"job delete", "job delete nightly", "forgets it, once it has ended"},
    {"train list", "train list", "a line for each run"},
    {"train show", "train show digits", "the newest run of this name: ranks, nodes, processes"},
    {"train show", "train show digits --format=json", "for programs"},
    {"train logs", "train logs digits --rank=1 --follow", "what rank 1 prints from now on"},
    {"train logs", "train logs digits --controller --system", "why the controller did what it did"},
    {"train stragglers", "train stragglers digits", "which rank the others wait for, and why"},
    {"train stragglers", "train stragglers digits --seconds=30", "for steps of up to 15 seconds"},
    {"train profile", "train profile digits", "three steps of all ranks, with memory and stacks"},
    {"train profile", "train profile digits --steps=10 --ranks=0,1 --no-stack --no-memory",
     "with less of a slowdown"},
    {"train tensorboard", "train tensorboard digits", "until Ctrl-C"},
    {"kill-actor", "kill-actor --name=counter --namespace=default", "after its queued calls"},
    {"drain-node",
     "drain-node --node-id=9f3c06a1e0f7d3a5c0d6b6f29f3c06a1e0f7d3a5c0d6b6f29f3c06a1 "
     "--reason=DRAIN_NODE_REASON_PREEMPTION --reason-message=maintenance "
     "--deadline-remaining-seconds=600",
     "it takes nothing new and leaves when idle, in ten minutes at the latest"},
    {"debug", "debug", "what waits, and for what"},
    {"health-check", "health-check --address=10.0.0.1:6379 && echo healthy",
     "for scripts and probes"},
    {"microbenchmark", "microbenchmark --only='tasks async'",
     "some lines of the standard benchmark"},
    {"get-auth-token", "get-auth-token", "for the machines that join"},
    {"completion", "completion bash > /etc/bash_completion.d/rayctl",
     "completes commands, options and values; also zsh and fish"},
    {"version", "version", "the version of this program"},
    {"help", "help job submit", "options and examples of a command"},
};

}  // namespace

std::span<const Example> examples() { return kExamples; }

std::vector<Example> examples_of(const std::string& command) {
  std::vector<Example> out;
  for (const Example& one : kExamples) {
    if (one.command == command) out.push_back(one);
  }
  return out;
}

}  // namespace rt::cli
