// The body of POST /api/jobs/, also what `rayctl job submit` makes of its options.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/proto/head.pb.h"

namespace rt::api_json {

struct JobRequestError {
  int status = 400;  // HTTP
  std::string text;
};

// Unknown fields and wrong types are 400, what is no JSON is 500.
bool parse_job_request(const std::string& body, proto::SubmitJobRequest* request,
                       JobRequestError* error);

}  // namespace rt::api_json
