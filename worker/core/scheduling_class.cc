#include "worker/core/scheduling_class.h"

#include "common/scheduling/policy.h"

namespace rt::worker {

std::string class_key(const proto::TaskTemplate& spec) {
  std::string key = ResourceSet::from_proto(spec.resources()).to_string() + '\n' +
                    std::to_string(spec.strategy()) + '\n' + spec.runtime_env() + '\n' +
                    std::to_string(spec.function().language());
  if (!spec.group_id().empty()) key += '\n' + spec.group_id() + std::to_string(spec.bundle_index());
  if (spec.has_constraint()) key += '\n' + spec.constraint().SerializeAsString();
  return key;
}

std::unique_ptr<SchedulingClass> make_class(const proto::TaskTemplate& spec, uint64_t id) {
  auto made = std::make_unique<SchedulingClass>();
  made->id = id;
  made->resources = ResourceSet::from_proto(spec.resources());
  made->strategy = spec.strategy();
  made->takes_turns = scheduling::policy_of(spec.strategy()).takes_turns;
  made->runtime_env = spec.runtime_env();
  made->language = spec.function().language();
  if (spec.has_constraint())
    made->constraint = std::make_unique<proto::NodeConstraint>(spec.constraint());
  if (GroupId::is_valid(spec.group_id()))
    made->group =
        std::make_unique<GroupDemand>(GroupId::from_binary(spec.group_id()), spec.bundle_index());
  return made;
}

}  // namespace rt::worker
