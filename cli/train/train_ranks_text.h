// Where the ranks of a training run are and spend their time, as text. Pure functions; `look` is an
// answer of state::look_at_ranks().
#pragma once

#include <string>

#include "observability/api_json/node_json.h"

namespace rt::cli {

// The verdict in a sentence, and a table of shares of the time by rank.
std::string train_look_text(const api_json::Json& look);
// A line for each rank: where it is now.
std::string train_places_text(const api_json::Json& look);
// Returns which ranks of an attempt have not come to a call in which the others wait, each with its
// node and process; empty if none is missing for long.
std::string train_missing_text(const api_json::Json& attempt);

}  // namespace rt::cli
