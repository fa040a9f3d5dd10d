// The fields of a task's template that lists of tasks show: the texts of task_texts.def as they
// are, and those that a TaskRecord names itself.
#pragma once

#include <string>

#include "common/proto/common.pb.h"
#include "common/proto/worker.pb.h"
#include "observability/events/task_events.h"

namespace rt {

struct TaskText {
  const char* column;
  const std::string& (proto::TaskTemplate::*in_template)() const;
  uint32_t TaskEventCommon::* in_event;  // The index of a string.
};
inline constexpr TaskText kTaskTexts[] = {
#define TASK_TEXT(name) {#name, &proto::TaskTemplate::name, &TaskEventCommon::name},
#include "observability/events/task_texts.def"
#undef TASK_TEXT
};

// Fills in everything that the record of a task takes from its template, except the function, whose
// name for people depends on its language.
void describe(const proto::TaskTemplate& spec, proto::TaskRecord* record);

}  // namespace rt
