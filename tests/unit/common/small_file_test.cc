// Files that are read whole, up to a bound.
#include "common/base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rt {
namespace {

using ::testing::HasSubstr;

std::string why_not(const Result<std::string>& text) {
  return text ? "no error" : text.error().message;
}

TEST(SmallFile, IsReadWholeUpToItsBound) {
  const auto path =
      std::filesystem::temp_directory_path() / ("small-file-" + std::to_string(::getpid()));
  const std::string text(10'000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(*read_small_file(path), text);
  EXPECT_EQ(*read_small_file(path, text.size()), text);
  EXPECT_THAT(why_not(read_small_file(path, text.size() - 1)),
              HasSubstr("more than the 9999 bytes"));
  std::filesystem::remove(path);
  EXPECT_EQ(*read_small_file("/dev/null"), "");
}

TEST(SmallFile, ADeviceThatNeverEndsIsRefused) {
  EXPECT_THAT(why_not(read_small_file("/dev/zero")), HasSubstr("more than the 1048576 bytes"));
}

TEST(SmallFile, TheReasonIsThatOfTheSystem) {
  EXPECT_EQ(why_not(read_small_file("/nonexistent")), "No such file or directory");
  EXPECT_EQ(why_not(read_small_file("/")), "Is a directory");
}

}  // namespace
}  // namespace rt
