#include "daemons/head/storage/storage_health.h"

namespace rt::head {

bool StorageHealth::wrote(File file, const Status& outcome) {
  const std::string before = failure();
  errors_[static_cast<size_t>(file)] = outcome ? "" : outcome.error().message;
  if (!outcome) ++failures_;
  return failure() != before;
}

std::string StorageHealth::failure() const {
  for (const std::string& error : errors_) {
    if (!error.empty()) return "storage is failing: " + error;
  }
  return "";
}

}  // namespace rt::head
