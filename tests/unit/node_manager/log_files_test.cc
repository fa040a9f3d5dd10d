// The log files that clients may list and read: by plain names, in pieces, and no file outside the
// directory.
#include "daemons/node_manager/process/log_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "process_fixture.h"

namespace rt::node {
namespace {

class LogFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(logs + "/" + name) << text;
  }
  std::vector<std::string> names(const std::string& glob = "") {
    std::vector<std::string> found;
    auto reply = list_log_files(logs, glob);
    EXPECT_TRUE(reply) << reply.error().message;
    for (const auto& file : reply->files())
      found.push_back(file.name() + (file.is_directory() ? "/" : ""));
    return found;
  }
  Result<proto::ReadLogFileReply> read(const std::string& name, int64_t offset = 0,
                                       int64_t max_bytes = 0) {
    proto::ReadLogFileRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_max_bytes(max_bytes);
    return read_log_file(logs, request);
  }

  ScratchDir scratch;
  std::string logs = scratch.root() + "/logs";
};

TEST_F(LogFilesTest, AreListedByNameAndPattern) {
  write("worker-2.out", "");
  write("worker-1.out", "12345");
  write("worker-1.err", "");
  std::filesystem::create_directory(logs + "/events");
  EXPECT_EQ(names(),
            (std::vector<std::string>{"events/", "worker-1.err", "worker-1.out", "worker-2.out"}));
  EXPECT_EQ(names("worker-?.out"), (std::vector<std::string>{"worker-1.out", "worker-2.out"}));
  EXPECT_EQ(names("none*"), std::vector<std::string>());
  EXPECT_EQ(list_log_files(logs, "worker-1.out")->files(0).size(), 5);
}

TEST_F(LogFilesTest, ComeInPieces) {
  write("a.log", "0123456789");
  auto piece = read("a.log", 3, 4);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->data(), "3456");
  EXPECT_EQ(piece->size(), 10);
  EXPECT_EQ(read("a.log", 8)->data(), "89");
  EXPECT_EQ(read("a.log", 10)->data(), "");
  EXPECT_EQ(read("a.log", std::numeric_limits<int64_t>::max())->data(), "");
  write("big.log", std::string(2 * kLogChunkBytes, 'x'));
  EXPECT_EQ(read("big.log", 0, 3 * kLogChunkBytes)->data().size(),
            static_cast<size_t>(kLogChunkBytes));
}

TEST_F(LogFilesTest, NothingElseCanBeNamed) {
  std::ofstream(scratch.root() + "/secret") << "token";
  std::filesystem::create_symlink(scratch.root() + "/secret", logs + "/link.log");
  std::filesystem::create_directory(logs + "/events");
  std::ofstream(logs + "/events/inner.log") << "x";
  ASSERT_EQ(::mkfifo((logs + "/pipe.log").c_str(), 0600), 0);
  for (const char* name : {"", ".", "..", "../secret", "/etc/passwd", "events/", "./inner.log",
                           "events/../../secret", "../logs/events", "a/b/c.log"}) {
    auto piece = read(name);
    ASSERT_FALSE(piece) << name;
    EXPECT_EQ(piece.error().code, Code::kInvalid) << name;
  }
  // Opening the pipe must not block until a writer comes.
  for (const char* name : {"link.log", "pipe.log", "events", "none"}) {
    auto piece = read(name);
    ASSERT_FALSE(piece) << name;
    EXPECT_EQ(piece.error().code, Code::kNotFound) << name;
  }
  EXPECT_EQ(read("events/inner.log")->data(), "x");
  std::filesystem::create_directory_symlink(scratch.root(), logs + "/elsewhere");
  for (const char* name : {"elsewhere/secret", "events/none", "none/inner.log", "pipe.log/x"})
    EXPECT_EQ(read(name).error().code, Code::kNotFound) << name;
  EXPECT_EQ(read(std::string("a\0b", 3)).error().code, Code::kInvalid);
  EXPECT_EQ(names(), std::vector<std::string>{"events/"});
  EXPECT_FALSE(read("a.log", -1));
}

}  // namespace
}  // namespace rt::node
