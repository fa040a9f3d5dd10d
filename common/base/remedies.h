// Advice that several processes give, in one place, so that users meet one wording of it.
#pragma once

#include <string>

namespace rt {

inline constexpr char kMoreStoreMemory[] = "give the store more memory (--object-store-memory)";

// For an object store that is full. With `no_pages` its directory is full before its capacity is
// reached, and the text that goes before names the directory.
inline std::string full_store_remedy(bool no_pages) {
  std::string remedy = "Drop references that are no longer needed, ";
  remedy += no_pages ? "free space there, or " : "or ";
  remedy += no_pages ? "give the store another directory (--plasma-directory)" : kMoreStoreMemory;
  return remedy;
}

}  // namespace rt
