#include "observability/api_json/job_request.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/base/json_depth.h"
#include "common/base/json_text.h"
#include "common/resources/label_selector.h"
#include "common/resources/resource_set.h"

namespace rt::api_json {
namespace {

using PlainJson = nlohmann::json;

Error wrong(const std::string& field, const char* expected, const PlainJson& value) {
  return make_error(Code::kInvalid, fmt::format("{} must be {}, got {}", field, expected,
                                                json_text(value).substr(0, 200)));
}

// Returns the text of a field; null counts as "".
Result<std::string> text_of(const std::string& field, const PlainJson& value) {
  if (value.is_null()) return std::string();
  if (!value.is_string()) return wrong(field, "a string", value);
  return value.get<std::string>();
}

Result<std::map<std::string, std::string>> texts_of(const std::string& field,
                                                    const PlainJson& value) {
  std::map<std::string, std::string> out;
  if (value.is_null()) return out;
  if (!value.is_object()) return wrong(field, "an object of strings", value);
  for (const auto& [name, item] : value.items()) {
    if (!item.is_string()) return wrong(field + "[" + name + "]", "a string", item);
    out[name] = item.get<std::string>();
  }
  return out;
}

// Adds an amount under the name `resource`; null adds nothing. kInvalid if the request has that
// name already.
Status add_amount(const std::string& field, const std::string& resource, const PlainJson& value,
                  std::map<std::string, double>* amounts) {
  if (value.is_null()) return {};
  if (!value.is_number()) return wrong(field, "a number", value);
  if (amounts->contains(resource))
    return make_error(Code::kInvalid, fmt::format("{}: {} is given twice", field, resource));
  (*amounts)[resource] = value.get<double>();
  return {};
}

Status take_resources(const std::string& field, const PlainJson& value,
                      std::map<std::string, double>* amounts) {
  if (field == "entrypoint_num_cpus") return add_amount(field, "CPU", value, amounts);
  if (field == "entrypoint_num_gpus") return add_amount(field, "GPU", value, amounts);
  if (field == "entrypoint_memory") {
    if (!value.is_null() && !value.is_number_integer())
      return wrong(field, "a whole number of bytes", value);
    return add_amount(field, "memory", value, amounts);
  }
  if (value.is_null()) return {};
  if (!value.is_object()) return wrong(field, "an object of numbers", value);
  for (const auto& [name, amount] : value.items()) {
    if (name == "CPU" || name == "GPU")
      return make_error(Code::kInvalid, fmt::format("{}: use entrypoint_num_{}s for {}", field,
                                                    name == "CPU" ? "cpu" : "gpu", name));
    RT_TRY(add_amount(field + "[" + name + "]", name, amount, amounts));
  }
  return {};
}

Status take(const std::string& field, const PlainJson& value, proto::SubmitJobRequest* request,
            std::map<std::string, double>* amounts) {
  if (field == "entrypoint") {
    if (!value.is_string()) return wrong(field, "a string", value);
    request->set_entrypoint(value.get<std::string>());
  } else if (field == "submission_id" || field == "job_id") {
    RT_ASSIGN(std::string id, text_of(field, value));
    // job_id is the old name of submission_id, which takes precedence.
    if (!id.empty() && (field == "submission_id" || request->submission_id().empty()))
      request->set_submission_id(id);
  } else if (field == "metadata") {
    RT_ASSIGN(auto metadata, texts_of(field, value));
    for (const auto& [name, text] : metadata) (*request->mutable_metadata())[name] = text;
  } else if (field == "runtime_env") {
    if (!value.is_null() && !value.is_object()) return wrong(field, "an object", value);
    if (!value.empty()) request->set_runtime_env_json(json_text(value));
  } else if (field == "entrypoint_label_selector") {
    RT_ASSIGN(auto selector, texts_of(field, value));
    RT_ASSIGN(*request->mutable_entrypoint_labels(), parse_label_selector(selector));
  } else if (field == "entrypoint_num_cpus" || field == "entrypoint_num_gpus" ||
             field == "entrypoint_memory" || field == "entrypoint_resources") {
    return take_resources(field, value, amounts);
  } else {
    return make_error(Code::kInvalid, fmt::format("unexpected field '{}'", field.substr(0, 100)));
  }
  return {};
}

Status read(const PlainJson& body, proto::SubmitJobRequest* request) {
  if (!body.is_object()) return wrong("the body", "an object", body);
  std::map<std::string, double> amounts;
  for (const auto& [field, value] : body.items()) RT_TRY(take(field, value, request, &amounts));
  if (request->entrypoint().empty())
    return make_error(Code::kInvalid, "entrypoint is missing: the command to run");
  RT_ASSIGN(ResourceSet resources, ResourceSet::from_map(amounts));
  if (!resources.empty()) resources.to_proto(request->mutable_entrypoint_resources());
  return {};
}

}  // namespace

bool parse_job_request(const std::string& text, proto::SubmitJobRequest* request,
                       JobRequestError* error) {
  if (json_depth(text) > kMaxJsonDepth) {
    *error = {400, fmt::format("the body is nested more than {} deep", kMaxJsonDepth)};
    return false;
  }
  PlainJson body = parse_json(text);
  if (body.is_discarded()) {
    *error = {500, "the body is no JSON"};
    return false;
  }
  Status good = read(body, request);
  if (good) return true;
  *error = {400, good.error().message};
  return false;
}

}  // namespace rt::api_json
