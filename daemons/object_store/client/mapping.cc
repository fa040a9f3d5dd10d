#include "daemons/object_store/client/mapping.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace rt::store {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kGranule = 64 * 1024;
constexpr size_t kHuge = 2 << 20;
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;
#endif

// Copies look up here the mapping that they write to. A process has one store, tests have a few.
std::atomic<Mapping*> g_mappings[8];

// Maps at a 2 MiB boundary, so that the kernel can use huge pages if the file system has them.
Result<uint8_t*> map_aligned(int fd, size_t size, int protection) {
  size_t room = size + kHuge;
  void* reserved =
      ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return errno_error(fmt::format("cannot map {} bytes of the object store's memory", size),
                       errno);
  auto* start = static_cast<uint8_t*>(reserved);
  auto* aligned =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(start) + kHuge - 1) / kHuge * kHuge);
  void* mapped = ::mmap(aligned, size, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  int error = errno;
  if (aligned > start) ::munmap(start, static_cast<size_t>(aligned - start));
  uint8_t* end = aligned + (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (end < start + room) ::munmap(end, static_cast<size_t>(start + room - end));
  if (mapped == MAP_FAILED)
    return errno_error(fmt::format("cannot map {} bytes of the object store's memory", size),
                       error);
  ::madvise(mapped, size, MADV_HUGEPAGE);
  ::madvise(mapped, size, MADV_DONTDUMP);
  return aligned;
}

}  // namespace

Result<std::shared_ptr<Mapping>> Mapping::map(int read_write_fd, int read_only_fd, int64_t size) {
  std::shared_ptr<Mapping> mapping(new Mapping());
  auto bytes = static_cast<size_t>(size);
  RT_ASSIGN(mapping->writable_, map_aligned(read_write_fd, bytes, PROT_READ | PROT_WRITE));
  mapping->size_ = size;
  RT_ASSIGN(mapping->readable_, map_aligned(read_only_fd, bytes, PROT_READ));
  mapping->touched_bytes_ = bytes / kGranule + 1;
  void* touched = ::mmap(nullptr, mapping->touched_bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (touched != MAP_FAILED) mapping->touched_ = static_cast<std::atomic<uint8_t>*>(touched);
  for (auto& slot : g_mappings) {
    Mapping* empty = nullptr;
    // A mapping without a slot works; only copies to it are slower.
    if (slot.compare_exchange_strong(empty, mapping.get())) break;
  }
  return mapping;
}

Mapping::~Mapping() {
  for (auto& slot : g_mappings) {
    Mapping* self = this;
    slot.compare_exchange_strong(self, nullptr);
  }
  if (writable_) ::munmap(writable_, static_cast<size_t>(size_));
  if (readable_) ::munmap(const_cast<uint8_t*>(readable_), static_cast<size_t>(size_));
  if (touched_) ::munmap(touched_, touched_bytes_);
}

void Mapping::prepare_for_copy(uint8_t* to, size_t n) {
  for (auto& slot : g_mappings) {
    Mapping* mapping = slot.load(std::memory_order_acquire);
    if (mapping && to >= mapping->writable_ && to + n <= mapping->writable_ + mapping->size_)
      return mapping->prepare(to, n);
  }
}

void Mapping::prepare(uint8_t* to, size_t n) {
  if (!touched_) return;
  auto start = static_cast<size_t>(to - writable_);
  // Only granules that lie wholly inside the object are populated: memory next to it may belong to
  // another client and may have no pages.
  size_t first = (start + kGranule - 1) / kGranule, last = (start + n) / kGranule;
  while (first < last && touched_[first].load(std::memory_order_relaxed)) first++;
  while (first < last && touched_[last - 1].load(std::memory_order_relaxed)) last--;
  if (first >= last) return;
  // If the kernel is too old for this call, faults bring the pages in.
  if (::madvise(writable_ + first * kGranule, (last - first) * kGranule, kPopulateWrite) != 0)
    return;
  for (size_t i = first; i < last; i++) touched_[i].store(1, std::memory_order_relaxed);
}

}  // namespace rt::store
