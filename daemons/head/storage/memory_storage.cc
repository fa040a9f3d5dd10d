#include "daemons/head/storage/memory_storage.h"

namespace rt::head {

void MemoryStorage::write(Disk& disk, const Batch& batch) {
  ++disk.batches;
  for (const Write& write : batch) {
    if (write.value) {
      disk.tables[write.table][write.key] = *write.value;
    } else {
      disk.tables[write.table].erase(write.key);
    }
  }
}

void MemoryStorage::apply(Batch batch, Done done) {
  Status status;
  if (disk_.failure) {
    status = *disk_.failure;
  } else {
    write(disk_, batch);
  }
  post_([done = std::move(done), status] { done(status); });
}

}  // namespace rt::head
