#include "tests/sim/disk.h"

namespace rt::sim {
namespace {

void set_record(head::Records& records, const std::string& key,
                const std::optional<std::string>& value) {
  if (value) {
    records[key] = *value;
  } else {
    records.erase(key);
  }
}

}  // namespace

void Disk::commit(const head::Batch& batch, int64_t now_us) {
  for (const head::Write& write : batch) {
    head::Records& records = tables[write.table];
    if (forgets) {
      auto before = records.find(write.key);
      replaced_.push_back({now_us, write.table, write.key,
                           before == records.end() ? std::nullopt : std::optional(before->second)});
    }
    set_record(records, write.key, write.value);
  }
}

void Disk::set_back(int64_t since_us) {
  while (!replaced_.empty() && replaced_.back().at_us > since_us) {
    const Replaced& last = replaced_.back();
    set_record(tables[last.table], last.key, last.value);
    replaced_.pop_back();
  }
}

}  // namespace rt::sim
