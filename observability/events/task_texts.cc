#include "observability/events/task_texts.h"

namespace rt {

void describe(const proto::TaskTemplate& spec, proto::TaskRecord* record) {
  record->set_name(spec.name());
  *record->mutable_resources() = spec.resources();
  record->set_language(spec.function().language());
  record->set_runtime_env(spec.runtime_env());
  record->set_group_id(spec.group_id());
  for (const TaskText& text : kTaskTexts) {
    const std::string& value = (spec.*text.in_template)();
    if (!value.empty()) (*record->mutable_texts())[text.column] = value;
  }
}

}  // namespace rt
