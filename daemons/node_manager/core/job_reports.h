// Decides which reports of entrypoints are sent again, and of which submission one is.
#pragma once

#include "common/base/status.h"
#include "common/proto/common.pb.h"

namespace rt::node {

// Whether the head must be told again of an entrypoint; its other errors are its last word.
inline bool must_report_again(const Error& error) {
  return may_recover(error.code) || error.code == Code::kOutOfDisk || error.code == Code::kIo;
}
// Whether both are of one submission. The id alone does not say it: a job may have that of another
// one which the head has deleted.
inline bool is_same_submission(const proto::SubmittedJob& a, const proto::SubmittedJob& b) {
  return a.submission_id() == b.submission_id() && a.start_time_ms() == b.start_time_ms();
}

}  // namespace rt::node
