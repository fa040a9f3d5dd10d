#include "daemons/object_store/shm/arena.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "common/base/log.h"
#include "launch/node/detect.h"

namespace rt::store {

namespace {

constexpr const char* kDefaultDirectory = "/dev/shm";
constexpr int64_t kPageBytes = 4096;
constexpr double kShareOfMemory = 0.3;

// Returns the error of a failed system call on the directory that `what` names, with the remedy.
Error unusable_directory(const std::string& what, int errnum) {
  Error error = errno_error(what, errnum);
  error.message +=
      ": name a directory in which this user may write with --directory (rayctl: "
      "--plasma-directory)";
  return error;
}

Result<int64_t> free_space(const std::string& directory) {
  struct statvfs fs;
  if (::statvfs(directory.c_str(), &fs) != 0)
    return unusable_directory(fmt::format("directory {} of the object store's memory", directory),
                              errno);
  return static_cast<int64_t>(fs.f_bavail) * static_cast<int64_t>(fs.f_frsize);
}

bool lives_in_memory(const std::string& directory) {
  struct statfs fs;
  return ::statfs(directory.c_str(), &fs) != 0 || fs.f_type == TMPFS_MAGIC ||
         fs.f_type == RAMFS_MAGIC;
}

// Opens a file without a name: no other process can see it, and it ends with its last descriptor.
Result<int> open_unnamed(const std::string& directory) {
  int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
    return unusable_directory(
        fmt::format("cannot create the object store's memory in {}", directory), errno);
  std::string name = directory + "/rt-store-XXXXXX";
  std::vector<char> path(name.c_str(), name.c_str() + name.size() + 1);
  fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0)
    return unusable_directory(
        fmt::format("cannot create the object store's memory in {}", directory), errno);
  ::unlink(path.data());
  return fd;
}

Result<int> open_anonymous() {
  int fd = ::memfd_create("object-store", MFD_CLOEXEC);
  if (fd < 0)
    return errno_error("cannot create anonymous shared memory for the object store", errno);
  return fd;
}

struct Plan {
  bool anonymous = false;
  std::string directory;
  int64_t capacity = 0;
};

Result<Plan> plan(const Arena::Options& options) {
  Plan plan;
  plan.directory = options.directory.empty() ? kDefaultDirectory : options.directory;
  int64_t memory = launch::detect_memory();
  int64_t wanted = options.capacity > 0
                       ? options.capacity
                       : static_cast<int64_t>(kShareOfMemory * static_cast<double>(memory));
  auto free = free_space(plan.directory);
  bool is_default = options.directory.empty();
  if (!free && !is_default) return std::move(free).error();
  if (!is_default && options.capacity == 0) wanted = std::min(wanted, *free);
  if (wanted < options.min_capacity) {
    return make_error(
        Code::kInvalid,
        fmt::format("the object store would get {} bytes, less than the smallest that is accepted "
                    "({}): {} bytes of memory are available, {} has {} free. Give it more with "
                    "--memory (rayctl: --object-store-memory), or lower min_object_store_memory",
                    wanted, options.min_capacity, memory, plan.directory, free ? *free : 0));
  }
  int64_t total = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  if (wanted > total && (is_default || lives_in_memory(plan.directory))) {
    return make_error(Code::kInvalid,
                      fmt::format("an object store of {} bytes is more than this machine's memory "
                                  "({} bytes): lower --memory (rayctl: --object-store-memory)",
                                  wanted, total));
  }
  if (!free || *free < wanted) {
    if (!is_default) {
      return make_error(
          Code::kObjectStoreFull,
          fmt::format(
              "directory {} has {} bytes free, the object store wants {}. Free space there, choose "
              "another --directory, or lower --memory (rayctl: --object-store-memory)",
              plan.directory, *free, wanted));
    }
    // A container with 64 MB of /dev/shm, or none, must still get a running node.
    if (options.capacity == 0 && free && *free >= std::max(options.min_capacity, wanted / 2)) {
      wanted = *free;
    } else {
      RT_WARN(
          "{} {}, the object store wants {} bytes: using anonymous shared memory instead (it "
          "counts as memory of this process's control group)",
          plan.directory,
          free ? fmt::format("has {} bytes free", *free) : std::string("is missing"), wanted);
      plan.anonymous = true;
    }
  }
  plan.capacity = wanted / kPageBytes * kPageBytes;
  if (plan.capacity < kPageBytes)
    return make_error(Code::kInvalid,
                      fmt::format("an object store of {} bytes cannot hold anything: give it more "
                                  "with --memory (rayctl: --object-store-memory)",
                                  wanted));
  return plan;
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(const Options& options) {
  RT_ASSIGN(Plan plan, rt::store::plan(options));
  std::unique_ptr<Arena> arena(new Arena());
  arena->capacity_ = plan.capacity;
  arena->place_ = plan.anonymous ? "anonymous memory" : plan.directory;
  arena->reserve_hint_ = plan.anonymous ? "anonymous shared memory of this machine is"
                                        : fmt::format("the file system of {} is", plan.directory);
  RT_ASSIGN(arena->read_write_, plan.anonymous ? open_anonymous() : open_unnamed(plan.directory));
  if (::ftruncate(arena->read_write_, arena->capacity_) != 0)
    return errno_error(fmt::format("cannot make the object store's file {} bytes long in {}",
                                   arena->capacity_, arena->place_),
                       errno);
  std::string again = fmt::format("/proc/self/fd/{}", arena->read_write_);
  arena->read_only_ = ::open(again.c_str(), O_RDONLY | O_CLOEXEC);
  if (arena->read_only_ < 0)
    return errno_error(
        "cannot open the object store's memory read-only through /proc (is it mounted?)", errno);
  size_t size = static_cast<size_t>(arena->capacity_);
  void* writable = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                          arena->read_write_, 0);
  if (writable == MAP_FAILED)
    return errno_error(fmt::format("cannot map {} bytes of the object store", size), errno);
  arena->read_write_map_ = static_cast<uint8_t*>(writable);
  void* readable =
      ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, arena->read_only_, 0);
  if (readable == MAP_FAILED)
    return errno_error(fmt::format("cannot map {} bytes of the object store", size), errno);
  arena->read_only_map_ = static_cast<const uint8_t*>(readable);
  for (void* map : {writable, readable}) {
    // The advice takes effect only where the kernel allows huge pages for this file system.
    ::madvise(map, size, MADV_HUGEPAGE);
    ::madvise(map, size, MADV_DONTDUMP);
  }
  return arena;
}

Arena::~Arena() {
  if (read_write_map_) ::munmap(read_write_map_, static_cast<size_t>(capacity_));
  if (read_only_map_)
    ::munmap(const_cast<uint8_t*>(read_only_map_), static_cast<size_t>(capacity_));
  if (read_write_ >= 0) ::close(read_write_);
  if (read_only_ >= 0) ::close(read_only_);
}

Status Arena::reserve(int64_t offset, int64_t size) {
  int rc;
  do {
    rc = ::fallocate(read_write_, 0, offset, size);
  } while (rc != 0 && errno == EINTR);
  if (rc == 0) return {};
  if (errno == ENOSPC || errno == ENOMEM || errno == EDQUOT) {
    return make_error(
        Code::kObjectStoreFull,
        fmt::format("{} full: no pages for {} more bytes beyond {}", reserve_hint_, size, offset));
  }
  if (errno == EOPNOTSUPP)
    return make_error(
        Code::kIo,
        fmt::format("{} not able to reserve space (fallocate): choose a tmpfs as --directory",
                    reserve_hint_));
  return errno_error(fmt::format("cannot reserve {} bytes of the object store in {}", size, place_),
                     errno);
}

}  // namespace rt::store
