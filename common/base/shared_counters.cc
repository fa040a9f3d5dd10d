#include "common/base/shared_counters.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rt {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kBytes = SharedCounters::kCounters * kLine;

static_assert(std::atomic<int64_t>::is_always_lock_free);

}  // namespace

Result<SharedCounter> SharedCounter::open(const std::string& place, int64_t number) {
  if (number < 0 || number >= SharedCounters::kCounters)
    return make_error(Code::kInvalid, fmt::format("there is no shared counter {}", number));
  Fd fd(::open(place.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid())
    return errno_error(fmt::format("cannot open the shared counters at {}", place), errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != static_cast<off_t>(kBytes))
    return make_error(Code::kInvalid, fmt::format("{} holds no shared counters", place));
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)),
               offset = static_cast<size_t>(number) * kLine;
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(),
                        static_cast<off_t>(offset / page * page));
  if (memory == MAP_FAILED) return errno_error("cannot map the shared counters", errno);
  SharedCounter counter;
  counter.at_ = {
      reinterpret_cast<std::atomic<int64_t>*>(static_cast<char*>(memory) + offset % page),
      [memory, page](void*) { ::munmap(memory, page); }};
  return counter;
}

Result<std::unique_ptr<SharedCounters>> SharedCounters::create() {
  Fd fd(::memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(kBytes)) != 0)
    return errno_error("cannot create shared counters", errno);
  // A process that shrank the memory would end the others: reading beyond its end raises SIGBUS.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return errno_error("cannot seal shared counters", errno);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errno_error("cannot map shared counters", errno);
  return std::unique_ptr<SharedCounters>(
      new SharedCounters(std::move(fd), static_cast<std::atomic<int64_t>*>(memory)));
}

SharedCounters::~SharedCounters() { ::munmap(memory_, kBytes); }

std::string SharedCounters::place() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get());
}

std::atomic<int64_t>& SharedCounters::at(int number) const {
  return memory_[static_cast<size_t>(number) * (kLine / sizeof(*memory_))];
}

int SharedCounters::take() {
  int number = -1;
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
  } else if (begun_ < kCounters) {
    number = begun_++;
  } else {
    return -1;
  }
  at(number).store(0, std::memory_order_relaxed);
  return number;
}

int64_t SharedCounters::give_back(int number) {
  free_.push_back(number);
  return std::max<int64_t>(0, at(number).load(std::memory_order_relaxed));
}

}  // namespace rt
