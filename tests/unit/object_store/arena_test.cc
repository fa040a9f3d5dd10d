// The shared memory behind the store: its file, its limits and its protection.
#include "daemons/object_store/shm/arena.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/object_store/store_fixture.h"

namespace rt::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Arena, LeavesNothingInItsDirectory) {
  TempDir directory;
  auto arena = Arena::create({directory.path(), 1 << 20, 0});
  ASSERT_TRUE(arena) << arena.error().message;
  ASSERT_TRUE((*arena)->reserve(0, 1 << 20));
  // The file has no name already while it is in use, so nothing is left after SIGKILL either.
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Arena, ReadersSeeWhatWritersWroteAndCannotWrite) {
  auto arena = Arena::create({"", 1 << 20, 0});
  ASSERT_TRUE(arena);
  ASSERT_TRUE((*arena)->reserve(0, 4096));
  (*arena)->writable(10, 1)[0] = 42;
  EXPECT_EQ((*arena)->readable(10, 1)[0], 42);
  void* writable =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (*arena)->read_only_fd(), 0);
  EXPECT_EQ(writable, MAP_FAILED);
}

TEST(Arena, DirectoryThatCannotHoldItIsAClearError) {
  TempDir directory;
  auto arena = Arena::create({directory.path(), int64_t{1} << 50, 0});
  ASSERT_FALSE(arena);
  EXPECT_THAT(arena.error().message, HasSubstr(directory.path()));
  EXPECT_THAT(arena.error().message, HasSubstr(std::to_string(int64_t{1} << 50)));
  EXPECT_THAT(arena.error().message, HasSubstr("--directory"));
  auto missing = Arena::create({directory / "none", 1 << 20, 0});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr(directory / "none"), HasSubstr("No such file or directory: name a"),
                    HasSubstr("--plasma-directory")));
}

TEST(Arena, TooSmallIsAnError) {
  auto arena = Arena::create({"", 1 << 20, 75 << 20});
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().code, Code::kInvalid);
}

// Runs in a child process with a mount namespace of its own, which can mount a small tmpfs.
TEST(Arena, FullFileSystemIsAnErrorAndNotASignal) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small tmpfs needs root";
  TempDir directory;
  pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
      ::_exit(77);
    }
    auto arena = Arena::create({directory.path(), 4 << 20, 0});
    if (!arena) ::_exit(1);
    int other = ::open((directory / "other").c_str(), O_CREAT | O_RDWR, 0600);
    if (::fallocate(other, 0, 0, 2 << 20) != 0) ::_exit(2);
    if (!(*arena)->reserve(0, 1 << 20)) ::_exit(3);
    Status status = (*arena)->reserve(1 << 20, 2 << 20);
    if (status) ::_exit(4);
    bool named = status.error().code == Code::kObjectStoreFull &&
                 status.error().message.find(directory.path()) != std::string::npos;
    ::_exit(named ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rt::store
