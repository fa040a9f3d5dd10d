// Precompiled header "json": for targets most of whose files use nlohmann/json.
#include <nlohmann/json.hpp>

#include "cmake/pch/proto.h"
