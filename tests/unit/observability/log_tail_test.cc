// Reading logs piece by piece while they grow and rotate, and filtering lines, markers and colours
// out of them.
#include "observability/state/log_tail.h"

#include <gtest/gtest.h>

#include <map>

namespace rt::state {
namespace {

class LogTailTest : public testing::Test {
 protected:
  struct File {
    std::string text;
    uint64_t inode;
    int64_t begins = 0;
  };
  LogTail tail(int64_t lines, bool count_markers = true) {
    auto read = [this](const std::string& name, int64_t offset,
                       int64_t max_bytes) -> Result<proto::ReadLogFileReply> {
      auto file = files.find(name);
      if (file == files.end()) return make_error(Code::kNotFound, "no " + name);
      proto::ReadLogFileReply reply;
      reply.set_size(static_cast<int64_t>(file->second.text.size()));
      reply.set_inode(file->second.inode);
      size_t most = max_bytes > 0 ? std::min(static_cast<size_t>(max_bytes), piece) : piece;
      reply.set_begins(file->second.begins);
      offset = std::max(offset, file->second.begins);
      if (offset < reply.size())
        reply.set_data(file->second.text.substr(static_cast<size_t>(offset), most));
      return reply;
    };
    return LogTail("log", lines, std::move(read), count_markers);
  }
  static std::string all(LogTail& tail) {
    std::string text;
    for (;;) {
      auto piece = tail.next();
      EXPECT_TRUE(piece);
      if (!piece || piece->empty()) return text;
      text += *piece;
    }
  }

  std::map<std::string, File> files = {{"log", {"one\ntwo\nthree\n", 1}}};
  size_t piece = 1 << 20;
};

TEST_F(LogTailTest, BeginsWithOneOfTheLastLines) {
  for (auto [lines, text] : {std::pair{-1, "one\ntwo\nthree\n"},
                             {0, ""},
                             {1, "three\n"},
                             {2, "two\nthree\n"},
                             {3, "one\ntwo\nthree\n"},
                             {100, "one\ntwo\nthree\n"}}) {
    LogTail log = tail(lines);
    EXPECT_EQ(all(log), text) << lines;
  }
  files["log"].text = "one\nopen";
  LogTail log = tail(1);
  EXPECT_EQ(all(log), "open");
  files["log"].text = "";
  LogTail empty = tail(5);
  EXPECT_EQ(all(empty), "");
}

TEST_F(LogTailTest, OfALongFileTheEndIsFound) {
  files["log"].text.clear();
  for (int i = 0; i < 100'000; ++i) files["log"].text += "line " + std::to_string(i) + "\n";
  LogTail log = tail(50'000);
  std::string text = all(log);
  EXPECT_TRUE(text.starts_with("line 50000\n")) << text.substr(0, 30);
}

TEST_F(LogTailTest, GoesOnWithWhatIsAppended) {
  LogTail log = tail(1);
  EXPECT_EQ(all(log), "three\n");
  EXPECT_EQ(all(log), "");
  files["log"].text += "four\n";
  EXPECT_EQ(all(log), "four\n");
}

TEST_F(LogTailTest, FollowsARenamedFile) {
  LogTail log = tail(1);
  EXPECT_EQ(all(log), "three\n");
  files["log.1"] = {files["log"].text + "last of the old\n", 1};
  files["log"] = {"first of the new\n", 2};
  EXPECT_EQ(all(log), "last of the old\nfirst of the new\n");
  files["log.1"] = {"unknown\n", 7};  // Rotated twice since the last read: the log between is lost.
  files["log"] = {"newer\n", 8};
  EXPECT_EQ(all(log), "newer\n");
}

TEST_F(LogTailTest, WhatRotationRemovedIsSaid) {
  const std::string gone =
      "[4 bytes were removed here by log rotation; RAY_ROTATION_MAX_BYTES and "
      "RAY_ROTATION_BACKUP_COUNT set how much is kept]\n";
  files["log"].begins = 4;
  for (auto [lines, text] : {std::pair{-1, gone + "two\nthree\n"},
                             {0, ""},
                             {1, "three\n"},
                             {2, "two\nthree\n"},
                             {100, gone + "two\nthree\n"}}) {
    LogTail log = tail(lines);
    EXPECT_EQ(all(log), text) << lines;
  }
  LogTail follower = tail(1);
  EXPECT_EQ(all(follower), "three\n");
  files["log"].text += "gone\nfive\n";
  files["log"].begins = 19;
  EXPECT_EQ(all(follower), "\n[5" + gone.substr(2) + "five\n");
  files["log"].begins = 24;  // Rotation removed everything.
  EXPECT_EQ(all(follower), "");
}

TEST_F(LogTailTest, SaysWhetherLinesWereLeftOut) {
  for (auto [lines, cut] : {std::pair{-1, false}, {1, true}, {2, true}, {3, false}, {4, false}}) {
    LogTail log = tail(lines);
    ASSERT_TRUE(log.begin());
    EXPECT_EQ(log.cut(), cut) << lines;
  }
}

TEST_F(LogTailTest, MarkersNeedNotBeLines) {
  files["log"].text =
      ":job_id:01\n:task_name:f\n:task_id:aa 0\none\n:task_id:bb "
      "0\ntwo\n:actor_name:A\n:task_id:cc 0\nthree\n:task_id:\n";
  LogTail two = tail(2, false);
  EXPECT_EQ(all(two), "two\n:actor_name:A\n:task_id:cc 0\nthree\n:task_id:\n");
  EXPECT_TRUE(two.cut());
  EXPECT_EQ(two.writer(), "f");
  LogTail one = tail(1, false);
  EXPECT_EQ(all(one), "three\n:task_id:\n");
  EXPECT_EQ(one.writer(), "A");
  LogTail three = tail(3, false);
  EXPECT_EQ(all(three),
            "one\n:task_id:bb 0\ntwo\n:actor_name:A\n:task_id:cc 0\nthree\n:task_id:\n");
  EXPECT_FALSE(three.cut()) << "nothing but markers is before";
  EXPECT_EQ(three.writer(), "f");
}

TEST_F(LogTailTest, AMarkerLiesAcrossPieces) {
  for (size_t behind : {0u, 1u, 5u, 11u, 12u, 13u}) {
    std::string rest(static_cast<size_t>(256 << 10) - 3 - behind, 'x');
    files["log"].text = "first\n:actor_name:Counter\n" + rest + "\nz\n" + std::string(behind, 'y');
    LogTail log = tail(behind ? 3 : 2, false);
    ASSERT_TRUE(log.begin());
    EXPECT_EQ(log.writer(), "Counter") << behind;
    EXPECT_TRUE(log.cut()) << behind;
  }
}

TEST_F(LogTailTest, AMissingFileIsSaid) {
  files.clear();
  LogTail log = tail(1);
  auto piece = log.next();
  ASSERT_FALSE(piece);
  EXPECT_EQ(piece.error().code, Code::kNotFound);
}

TEST(TaskLines, AreThoseBetweenTheTasksMarkers) {
  const std::string log =
      "start\n:job_id:01\n:task_name:f\n:task_id:aa 0\nmine\n:task_id:bb 0\nother\n:task_id:aa "
      "1\nretried\n:actor_name:A\nof no task\n:task_id:aa 0\nmine again\n:task_id:\nnobody's\n";
  for (size_t step : {1u, 3u, 1000u}) {
    TaskLines lines("aa", 0);
    std::string out;
    for (size_t at = 0; at < log.size(); at += step)
      out += lines.feed(std::string_view(log).substr(at, step));
    EXPECT_EQ(out, "mine\nmine again\n");
  }
  TaskLines retried("aa", 1);
  EXPECT_EQ(retried.feed(log), "retried\n");
  TaskLines open("cc", 0);
  EXPECT_EQ(open.feed(":task_id:cc 0\nno end"), "");
  EXPECT_EQ(open.finish(), "no end\n");
}

TEST(WithoutMarkers, OneMayComeInPieces) {
  const std::string log =
      ":job_id:01\n:task_name:f\none\n: two\n\nthree:task_id:aa\n:task_id:aa 0\n:task_i";
  for (size_t step : {1u, 3u, 1000u}) {
    WithoutMarkers plain;
    std::string out;
    for (size_t at = 0; at < log.size(); at += step)
      out += plain.feed(std::string_view(log).substr(at, step));
    EXPECT_EQ(out, "one\n: two\n\nthree:task_id:aa\n") << step;
    EXPECT_EQ(plain.finish(), ":task_i");
  }
  WithoutMarkers open;
  EXPECT_EQ(open.feed("a question: "), "a question: ") << "what begins no marker is not held";
}

TEST(WithoutColours, ACodeMayComeInPieces) {
  WithoutColours plain;
  EXPECT_EQ(plain.feed("a\x1b[3"), "a");
  EXPECT_EQ(plain.feed("1;1mb\x1b[0mc\x1b"), "bc");
  EXPECT_EQ(plain.feed("[Kd"), "d");
}

TEST(LastLines, AreTheLast) {
  EXPECT_EQ(last_lines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(last_lines("a\nb", 1), "b");
  EXPECT_EQ(last_lines("a\nb\n", 0), "");
  EXPECT_EQ(last_lines("a", 0), "");
  EXPECT_EQ(last_lines("a\n", 5), "a\n");
  EXPECT_EQ(last_lines("a\nb\n", -1), "a\nb\n");
  EXPECT_EQ(last_lines("", 3), "");
}

TEST(LogCategory, FollowsFromTheName) {
  for (auto [name, category] : {std::pair{"worker-x-1.out", "worker_out"},
                                {"worker-x-1.err", "worker_err"},
                                {"worker-x-1.err.2", "worker_err"},
                                {"job-driver-raysubmit_1.log", "driver"},
                                {"head.log", "gcs_server"},
                                {"node-manager.log", "raylet"},
                                {"fork-server-python.log", "internal"}}) {
    EXPECT_EQ(log_category(name), category) << name;
  }
}

}  // namespace
}  // namespace rt::state
