// The service discovery file for Prometheus, written into a temp root where other users may write.
#include "daemons/head/service/discovery_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace rt::head {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(DiscoveryFile, LinksThatSomebodyPlantedAreNotFollowed) {
  std::string root = testing::TempDir() + "/discovery.XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const fs::path above = root, session = above / "session", ours = above / "ours",
                 file = above / "prom_metrics_service_discovery.json";
  fs::create_directory(session);
  std::ofstream(ours) << "precious";
  for (const std::string& name : {file.string(), file.string() + "." + std::to_string(::getpid())})
    fs::create_symlink(ours, name);
  {
    DiscoveryFile targets(session, true);
    targets.write("[]");
    EXPECT_EQ(content(ours), "precious");
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file)));
    EXPECT_EQ(content(file), "[]");
    EXPECT_EQ(content(session / file.filename()), "[]");
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(0644))
        << "Prometheus may be another user's";
  }
  EXPECT_FALSE(fs::exists(file)) << "it goes with the head";
  EXPECT_EQ(std::distance(fs::directory_iterator(session), {}), 1) << "drafts are left";
  fs::remove_all(root);
}

TEST(DiscoveryFile, TheWarningNamesTheFileThatFailedAndWhy) {
  std::string root = testing::TempDir() + "/discovery.XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  const fs::path session = fs::path(root) / "session";  // This directory does not exist.
  DiscoveryFile targets(session, true);
  testing::internal::CaptureStderr();
  targets.write("[]");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(testing::HasSubstr(session / "prom_metrics_service_discovery.json"),
                             testing::HasSubstr("No such file or directory")));
  fs::remove_all(root);
}

}  // namespace
}  // namespace rt::head
