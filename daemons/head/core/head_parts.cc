#include "daemons/head/core/head_parts.h"

namespace rt::head {

HeadParts::HeadParts(
    HeadOptions given, HeadSink& to,
    std::function<void(const NodeId& node, const std::string& why, Now now)> silent_node_lost)
    : options(std::move(given)),
      sink(to),
      rng(options.seed),
      journal(sink),
      subscriptions(sink),
      cluster({options, sink, journal, timers, std::move(silent_node_lost)}),
      jobs(journal),
      kv(journal, options.settings),
      packages(kv, options.settings),
      groups({options, sink, journal, timers, cluster, subscriptions, jobs,
              [this](const ActorId& id) {
                const Actor* actor = actors.directory().find(id);
                return actor && !actor->dead();
              }}),
      actors({options, sink, journal, timers, cluster, subscriptions, jobs, groups.directory(),
              incarnation}),
      submitted({options, sink, journal, timers, cluster, rng}) {}

HeadParts::~HeadParts() = default;

}  // namespace rt::head
