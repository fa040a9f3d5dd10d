// Recovers what an earlier head left.
#pragma once

#include "daemons/head/core/head_parts.h"

namespace rt::head {

// Fills the parts, which must be new, from the tables, which are empty for a new cluster. Fails as
// HeadCore::load() says.
Status recover(HeadParts& head, const Tables& tables, Now now);

}  // namespace rt::head
