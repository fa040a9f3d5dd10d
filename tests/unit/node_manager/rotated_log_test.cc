// A log that is rotated into pieces remains one stream of bytes for its readers.
#include "daemons/node_manager/process/rotated_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/log_names.h"
#include "daemons/node_manager/process/log_files.h"
#include "process_fixture.h"

namespace rt::node {
namespace {

class RotatedLogTest : public testing::Test {
 protected:
  void begin(int64_t max_bytes, int64_t backups) {
    auto made = RotatedLog::create(path, {max_bytes, backups});
    ASSERT_TRUE(made) << made.error().message;
    log = std::move(*made);
  }
  // Reads everything from `offset` on, `most` bytes at a time. `first` receives the offset at
  // which the text really begins.
  std::string read(int64_t offset = 0, int64_t most = 1 << 20, int64_t* first = nullptr) const {
    std::string text;
    for (bool begun = false;; begun = true) {
      auto chunk = log->read(offset, most);
      EXPECT_TRUE(chunk) << chunk.error().message;
      if (!begun && first) *first = chunk->offset;
      if (!chunk || chunk->data.empty()) return text;
      text += chunk->data;
      offset = chunk->offset + static_cast<int64_t>(chunk->data.size());
    }
  }
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path("logs"))) {
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      found[entry.path().filename()] = text.str();
    }
    return found;
  }
  using Files = std::map<std::string, std::string>;

  ScratchDir dir;
  std::string path = dir.path("logs/log");
  std::unique_ptr<RotatedLog> log;
};

TEST_F(RotatedLogTest, PiecesEndWithALine) {
  begin(10, 2);
  for (const char* text : {"first\n", "second\n", "third\nfourth\nfif", "th\nsixth\n"})
    log->append(text);
  EXPECT_EQ(files(),
            (Files{{"log.2", "third\nfourth\n"}, {"log.1", "fifth\nsixth\n"}, {"log", ""}}));
  EXPECT_EQ(read(), "third\nfourth\nfifth\nsixth\n");
}

TEST_F(RotatedLogTest, AnyOffsetLeadsToItsByte) {
  begin(50, 100);
  std::string all;
  for (int i = 0; i < 200; ++i) all += fmt::format("line {}\n", i);
  log->append(all);
  ASSERT_GT(files().size(), 10u);
  EXPECT_EQ(log->size(), static_cast<int64_t>(all.size()));
  for (size_t offset = 0; offset <= all.size(); offset += 7)
    EXPECT_EQ(read(static_cast<int64_t>(offset), 13), all.substr(offset)) << offset;
  EXPECT_EQ(log->read(10, 1000)->data, all.substr(10, 1000))
      << "as many as there are, whatever piece they are in";
  EXPECT_EQ(log->tail(20), all.substr(all.size() - 20));
  EXPECT_EQ(log->tail(1 << 20), all);
  EXPECT_EQ(log->read(log->size() + 5, 10)->offset, log->size() + 5);
  log->close();
  EXPECT_EQ(read(), all);
}

TEST_F(RotatedLogTest, WhatRetentionRemovesIsCounted) {
  begin(10, 2);
  // Each line fills a piece.
  for (int i = 0; i < 8; ++i) log->append(fmt::format("line number {}\n", i));
  EXPECT_EQ(files(),
            (Files{{"log", ""}, {"log.1", "line number 7\n"}, {"log.2", "line number 6\n"}}));
  int64_t first = -1;
  EXPECT_EQ(read(3, 1 << 20, &first), "line number 6\nline number 7\n");
  EXPECT_EQ(first, 6 * 14);
  EXPECT_EQ(log->begins(), 6 * 14);
  EXPECT_EQ(log->size(), 8 * 14);
}

TEST_F(RotatedLogTest, AReaderGoesOnWhereItWasWhileItIsRotated) {
  begin(40, 3);
  std::string all, seen;
  int64_t offset = 0;
  for (int i = 0; i < 300; ++i) {
    std::string line = fmt::format("line {}\n", i);
    log->append(line);
    all += line;
    auto chunk = log->read(offset, i % 3 == 0 ? 5 : 1000);
    ASSERT_TRUE(chunk);
    ASSERT_EQ(chunk->offset, offset) << "nothing is gone for who keeps up";
    offset += static_cast<int64_t>(chunk->data.size());
    seen += chunk->data;
  }
  seen += read(offset);
  EXPECT_EQ(seen, all);
}

TEST_F(RotatedLogTest, ALineThatNeverEndsIsCut) {
  begin(100, 3);
  log->append(std::string(450, 'x'));
  EXPECT_EQ(files(), (Files{{"log", std::string(50, 'x')},
                            {"log.1", std::string(200, 'x')},
                            {"log.2", std::string(200, 'x')}}));
  log->append("\n");
  EXPECT_EQ(read(), std::string(450, 'x') + "\n");
}

TEST_F(RotatedLogTest, ZeroDisablesRotation) {
  for (auto [most, backups] : {std::pair{0, 5}, {10, 0}}) {
    auto limits = RotatedLog::limits_of({{"RAY_ROTATION_MAX_BYTES", std::to_string(most)},
                                         {"RAY_ROTATION_BACKUP_COUNT", std::to_string(backups)}});
    ASSERT_TRUE(limits);
    begin(limits->max_bytes, limits->backups);
    for (int i = 0; i < 20; ++i) log->append("some line\n");
    EXPECT_EQ(files().size(), 1u) << most;
    EXPECT_EQ(read().size(), 200u);
  }
}

TEST_F(RotatedLogTest, LimitsComeFromTheVariablesOfWorkers) {
  auto usual = RotatedLog::limits_of({});
  EXPECT_EQ(usual->max_bytes, 512 << 20);
  EXPECT_EQ(usual->backups, 5);
  for (const char* wrong : {"x", "-1", "1.5", "10 MB", "99999999999999999999"}) {
    auto limits = RotatedLog::limits_of({{"RAY_ROTATION_MAX_BYTES", wrong}});
    EXPECT_EQ(limits.error().code, Code::kInvalid) << wrong;
    EXPECT_EQ(limits.error().message,
              fmt::format("RAY_ROTATION_MAX_BYTES is '{}', but must be a whole number, 0 or more",
                          wrong));
  }
}

TEST_F(RotatedLogTest, ALaterLogOfTheNameBeginsAnew) {
  begin(10, 5);
  for (int i = 0; i < 5; ++i) log->append("the earlier log\n");
  uint64_t id = log->id();
  std::ofstream(path + ".1.log") << "another log's";
  begin(10, 5);
  EXPECT_NE(log->id(), id);
  log->append("new\n");
  EXPECT_EQ(files(), (Files{{"log", "new\n"}, {"log.1.log", "another log's"}}));
  RotatedLog::remove(path);
  EXPECT_EQ(files(), (Files{{"log.1.log", "another log's"}}));
}

TEST_F(RotatedLogTest, PiecesThatSomebodyRemovedOrCutAreGaps) {
  begin(10, 5);
  for (int i = 0; i < 4; ++i) log->append(fmt::format("line number {}\n", i));
  std::filesystem::remove(path + ".3");  // The piece with line 1.
  int64_t first = -1;
  EXPECT_EQ(read(), "line number 0\nline number 2\nline number 3\n");
  EXPECT_EQ(read(14, 100, &first), "line number 2\nline number 3\n");
  EXPECT_EQ(first, 28);
  log->append("line");
  std::filesystem::resize_file(path, 0);
  log->append(" 4\n");
  EXPECT_EQ(read(4 * 14, 100, &first), " 4\n");
  EXPECT_EQ(first, 4 * 14 + 4);
}

TEST_F(RotatedLogTest, AFullDiskCostsBytesAndSaysHowMany) {
  begin(1 << 20, 5);
  log->append("before\n");
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit full = {10, usual.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &full);
  log->append("lost text\n");  // The file takes three more bytes.
  log->append("more\n");
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, before);
  log->append("after\n");
  EXPECT_EQ(read(),
            "before\nlos[12 bytes of output are missing here: they could not be written]\nafter\n");
}

TEST_F(RotatedLogTest, WhatCannotBeRotatedGoesOnGrowing) {
  begin(10, 2);
  std::filesystem::create_directories(path + ".1/occupied");
  for (int i = 0; i < 4; ++i) log->append("some line\n");
  EXPECT_EQ(read(), "some line\nsome line\nsome line\nsome line\n");
  std::filesystem::remove_all(path + ".1");
  log->append("some line\n");
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(read().size(), 50u);
}

TEST_F(RotatedLogTest, ClientsReadTheRotatedLogAsOneFile) {
  begin(10, 2);
  for (int i = 0; i < 5; ++i) log->append(fmt::format("line number {}\n", i));
  proto::ReadLogFileRequest request;
  auto reply = read_rotated_log(*log, request);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->begins(), 3 * 14);
  EXPECT_EQ(reply->size(), 5 * 14);
  EXPECT_EQ(reply->data(), "line number 3\nline number 4\n");
  request.set_offset(4 * 14);
  request.set_max_bytes(4);
  EXPECT_EQ(read_rotated_log(*log, request)->data(), "line");
  request.set_offset(-1);
  EXPECT_EQ(read_rotated_log(*log, request).error().code, Code::kInvalid);
}

TEST(LogNames, RotatedPieces) {
  EXPECT_EQ(rotated_from("log.12"), "log");
  for (const char* none : {"log", "log.", "log1", "12", "", "log.1.log"})
    EXPECT_EQ(rotated_from(none), "") << none;
  EXPECT_EQ(job_of_log(job_log_name("a.log")), "a.log");
  for (const char* none : {"job-driver-a.log.1", "job-driver.log", "worker-1.log", ""})
    EXPECT_EQ(job_of_log(none), "") << none;
}

}  // namespace
}  // namespace rt::node
