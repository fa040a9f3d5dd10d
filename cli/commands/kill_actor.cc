// `rayctl kill-actor`: ends a named actor.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/client/head_client.h"
#include "cli/commands.h"
#include "cli/terminal/print.h"

namespace rt::cli {
namespace {

// Returns the binary id of the live actor called `name`. Without a namespace the name alone is
// enough unless actors of two namespaces have it (kInvalid). kNotFound if there is none.
Result<std::string> find_actor(Head& head, const std::string& name,
                               const std::optional<std::string>& name_space) {
  proto::ListActorsRequest request;
  request.set_alive_only(true);
  request.set_all_namespaces(true);
  request.set_named_only(true);
  RT_ASSIGN(auto reply, head.client->call(&proto::HeadService::Stub::ListActors, request));
  std::vector<std::string> ids, spaces;
  for (const auto& actor : reply.actors()) {
    if (actor.spec().name() != name || (name_space && actor.spec().ray_namespace() != *name_space))
      continue;
    ids.push_back(actor.spec().actor_id());
    spaces.push_back(actor.spec().ray_namespace());
  }
  if (ids.empty())
    return make_error(Code::kNotFound,
                      fmt::format("no live actor is named '{}'{}", name,
                                  name_space ? " in namespace '" + *name_space + "'" : ""));
  if (ids.size() > 1)
    return make_error(Code::kInvalid,
                      fmt::format("{} actors are named '{}': choose with --namespace {}",
                                  ids.size(), name, fmt::join(spaces, " or ")));
  return ids[0];
}

Status kill(const CommandLine& line, const std::string& name) {
  RT_ASSIGN(Head head, connect_head(line.get("address")));
  RT_ASSIGN(std::string id, find_actor(head, name,
                                       line.has("namespace") ? std::optional(line.get("namespace"))
                                                             : std::nullopt));
  bool force = line.has("force");
  proto::KillActorRequest request;
  request.set_actor_id(id);
  request.set_no_restart(line.has("no-restart"));
  request.set_graceful(!force);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  RT_TRY(head.client->call(&proto::HeadService::Stub::KillActor, request));
  if (force) {
    print("Actor killed (force): {}\n", name);
  } else {
    print("Requested graceful termination for actor: {}\n", name);
  }
  return {};
}

}  // namespace

int run_kill_actor(const Words& words) {
  CommandLine line("kill-actor", "Ends a named actor: after its queued calls, or at once.");
  line.address_option()
      .option("name", "NAME", "the actor's name")
      .option("namespace", "NAMESPACE", "the name's namespace, needed when several have it")
      .flag("force", "kill its process instead of letting it finish")
      .flag("no-restart", "it stays dead, whatever max_restarts says")
      .positional("NAME", false);
  if (auto code = line.parse(words)) return *code;
  if (line.has("name") && line.has("NAME"))
    return usage_error("kill-actor", "give the actor's name once: as a word or with --name");
  const std::string name = line.get("name", line.get("NAME"));
  if (name.empty()) return usage_error("kill-actor", "NAME is missing: which actor?");
  return finish(kill(line, name));
}

}  // namespace rt::cli
