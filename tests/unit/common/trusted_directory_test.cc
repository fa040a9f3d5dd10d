// Which directories may hold files that other users must not replace.
#include "common/base/trusted_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rt {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr DirectoryUse kUse = {"the test's files", "give another place"};
constexpr uid_t kNobody = 65534;

class TrustedDirectory : public ::testing::Test {
 protected:
  TrustedDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "trusted-XXXXXX").string();
    scratch_ = ::mkdtemp(pattern.data());
  }
  ~TrustedDirectory() override { std::filesystem::remove_all(scratch_); }
  std::string path(const std::string& name) const { return scratch_ + "/" + name; }
  static unsigned mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  static std::string error_of(const Status& status) {
    return status ? "no error" : status.error().message;
  }

 private:
  std::string scratch_;
};

TEST_F(TrustedDirectory, IsMadeForItsOwnerOnlyAndMayBeThereBefore) {
  const std::string inner = path("a/b");
  ASSERT_TRUE(claim_directory(inner + "/", kUse));
  EXPECT_EQ(mode_of(inner), 0700u);
  ASSERT_EQ(::chmod(inner.c_str(), 0755), 0);
  ASSERT_TRUE(claim_directory(inner, kUse));
  EXPECT_EQ(mode_of(inner), 0755u) << "the mode of one's own directory is one's own affair";
  std::filesystem::create_symlink(inner, path("link"));
  EXPECT_TRUE(claim_directory(path("link"), kUse));
}

TEST_F(TrustedDirectory, WhereAllMayWriteNobodyMayRemoveTheFilesOfOthers) {
  std::filesystem::create_directory(path("open"));
  ASSERT_EQ(::chmod(path("open").c_str(), 0777), 0);
  ASSERT_TRUE(claim_directory(path("open"), kUse));
  EXPECT_EQ(mode_of(path("open")), 01777u);
}

TEST_F(TrustedDirectory, AFileIsNone) {
  std::ofstream(path("file")) << "x";
  for (const std::string& taken : {path("file"), path("file/below")})
    EXPECT_THAT(error_of(claim_directory(taken, kUse)),
                AllOf(HasSubstr(taken), HasSubstr("the test's files"),
                      HasSubstr("Not a directory; give another place")));
}

TEST_F(TrustedDirectory, NeitherItNorALinkToItMayBeAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  std::filesystem::create_directory(path("theirs"));
  ASSERT_EQ(::chown(path("theirs").c_str(), kNobody, kNobody), 0);
  std::filesystem::create_symlink(path("theirs"), path("link"));
  std::filesystem::create_directory(path("ours"));
  std::filesystem::create_symlink(path("ours"), path("their link"));
  ASSERT_EQ(::lchown(path("their link").c_str(), kNobody, kNobody), 0);
  for (const char* name : {"theirs", "theirs/", "link", "their link", "their link/"})
    EXPECT_THAT(error_of(claim_directory(path(name), kUse)),
                AllOf(HasSubstr("belongs to another user (uid 65534), who could replace them"),
                      HasSubstr("give another place")))
        << name;
}

TEST_F(TrustedDirectory, NoFileInItMayBeAnotherUsers) {
  EXPECT_TRUE(check_file_owner(path("missing"), kUse));
  std::ofstream(path("file")) << "x";
  EXPECT_TRUE(check_file_owner(path("file"), kUse));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  ASSERT_EQ(::chown(path("file").c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(error_of(check_file_owner(path("file"), kUse)),
              AllOf(HasSubstr(path("file")), HasSubstr("(uid 65534), who could read or replace")));
}

TEST_F(TrustedDirectory, AFullDiskSaysSo) {
  const Error full = cannot_use("/x", kUse, ENOSPC);
  EXPECT_EQ(full.code, Code::kOutOfDisk);
  EXPECT_THAT(full.message, HasSubstr("free some space there or give another place"));
  EXPECT_EQ(cannot_use("/x", kUse, EROFS).code, Code::kIo);
}

}  // namespace
}  // namespace rt
