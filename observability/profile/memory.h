// Reads memory of this process at addresses that may be invalid: the functions fail where a plain
// read would fault. Async-signal-safe.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace rt::profile {

inline bool read_memory(uint64_t address, void* out, size_t bytes) noexcept {
  iovec to{out, bytes}, from{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes);
}

template <class T>
bool read_memory(uint64_t address, T* out) noexcept {
  return read_memory(address, out, sizeof(T));
}

// Copies up to `bytes` bytes from `address` on, until the first page that cannot be read. Returns
// the number of bytes copied.
size_t read_memory_up_to(uint64_t address, std::byte* out, size_t bytes) noexcept;

}  // namespace rt::profile
