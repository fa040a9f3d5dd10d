// Profiles of training runs as text (observability/state/train_profiles.h).
#pragma once

#include <string>

#include "observability/state/query.h"

namespace rt::cli {

// The answer to the request for a profile: where its files are, and its summary.
std::string train_profile_text(const state::Json& answer);
// A line for each recorded profile, the newest first, and where TensorBoard shows them, from what
// state::train_profiles() returns; empty if there are none.
std::string train_profiles_text(const state::Json& profiles);

}  // namespace rt::cli
