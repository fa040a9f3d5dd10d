// Parses the body of POST /api/jobs/. `rayctl job submit` makes the same JSON of its options.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/proto/head.pb.h"

namespace rt::api_json {

struct JobRequestError {
  int status = 400;  // HTTP status
  std::string text;
};

// Fills `request` and returns true, or sets `error` and returns false. The status of the error is
// 400 for unknown fields, wrong types and deep nesting, and 500 for a body that is no JSON.
bool parse_job_request(const std::string& body, proto::SubmitJobRequest* request,
                       JobRequestError* error);

}  // namespace rt::api_json
