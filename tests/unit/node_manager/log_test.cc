// Lines of worker logs on their way to drivers: cutting, marking, and following files that rotate.
#include <fstream>

#include "common/base/rng.h"
#include "daemons/node_manager/process/log_monitor.h"
#include "process_fixture.h"

namespace rt::node {
namespace {

std::string text_of(const std::vector<proto::LogLines>& batches) {
  std::string text;
  for (const auto& batch : batches) {
    text += "[" + batch.name() + "]";
    for (const auto& line : batch.lines()) text += line + "|";
  }
  return text;
}

TEST(LogLines, MarkersNameWhatFollows) {
  LogLineReader reader(100);
  std::vector<proto::LogLines> out;
  reader.feed(":job_id:01000000\n:task_name:f\nhello\nwor", &out);
  EXPECT_EQ(text_of(out), "[f]hello|");
  EXPECT_EQ(out[0].job_id(), job_id_from_int(1).binary());
  reader.feed("ld\r\n:task_id:ab 0\n:actor_name:C\nx\n\n: y\n", &out);
  EXPECT_EQ(text_of(out), "[f]hello|world|[C]x||: y|");
  reader.feed("no newline", &out);
  reader.finish(&out, false);
  EXPECT_EQ(text_of(out), "[f]hello|world|[C]x||: y|no newline|");
  out.clear();
  // The first newline ends the partial line that was handed out; the other empty line is a line.
  reader.feed("\n:task_id:ab 1\n\nmore", &out);
  EXPECT_EQ(text_of(out), "[C]|");
  reader.finish(&out, false);
  reader.feed("\nlast\n", &out);
  EXPECT_EQ(text_of(out), "[C]|more|last|");
}

// A protobuf string has to be UTF-8: other bytes would lose the whole message with all its lines.
TEST(LogLines, WhatIsNoUtf8IsReplaced) {
  LogLineReader reader(100);
  std::vector<proto::LogLines> out;
  reader.feed("before\ncaf\xe9\n:task_name:\xff\nafter\n\xc3\xa9\n", &out);
  EXPECT_EQ(text_of(out), "[]before|caf\xef\xbf\xbd|[\xef\xbf\xbd]after|\xc3\xa9|");
  out.clear();
  reader.feed("ab\xc3", &out);  // The second half of the character may still come.
  EXPECT_TRUE(reader.has_partial());
  reader.finish(&out, false);
  EXPECT_FALSE(reader.has_partial());
  reader.feed(
      "\xa9"
      "cd\n",
      &out);
  reader.feed("xy\xe2\x82", &out);
  reader.finish(&out, true);
  EXPECT_EQ(text_of(out),
            "[\xef\xbf\xbd]ab|\xc3\xa9"
            "cd|xy\xef\xbf\xbd\xef\xbf\xbd|");
  for (const proto::LogLines& lines : out)
    EXPECT_TRUE(proto::LogLines().ParseFromString(lines.SerializeAsString()));
}

TEST(LogLines, LongLinesComeInPieces) {
  LogLineReader reader(4);
  std::vector<proto::LogLines> out;
  reader.feed("abcdefghij\nk\n", &out);
  EXPECT_EQ(text_of(out), "[]abcd|efgh|ij|k|");
  out.clear();
  // A line without an end is bounded as well.
  for (char c : std::string("abcdefgh")) reader.feed(std::string(1, c), &out);
  EXPECT_EQ(text_of(out), "[]abcd|efgh|");
  reader.feed("\n\n", &out);
  EXPECT_EQ(text_of(out), "[]abcd|efgh||");
}

TEST(LogMonitor, FollowsFilesUntilTheirWorkerEnds) {
  ScratchDir dir;
  AsioDriver driver;
  Settings settings;
  settings.log_batch_interval_ms = 1;
  std::vector<proto::LogLines> lines;
  LogMonitor monitor(driver.loop(), settings, dir.path("logs"), [&](const proto::HeadEvent& event) {
    lines.insert(lines.end(), event.logs().begin(), event.logs().end());
  });
  Rng rng(1);
  WorkerId worker = WorkerId::random(rng);
  std::ofstream out(dir.path("logs/worker-1.out")), err(dir.path("logs/worker-1.err"));
  out << "early\n" << std::flush;
  monitor.add(worker, 42, dir.path("logs/worker-1.out"), dir.path("logs/worker-1.err"));
  monitor.set_job(worker, job_id_from_int(3).binary());
  ASSERT_TRUE(driver.run_until([&] { return lines.size() == 1; }));
  EXPECT_EQ(lines[0].lines(0), "early");
  EXPECT_EQ(lines[0].pid(), 42);
  EXPECT_EQ(lines[0].job_id(), job_id_from_int(3).binary());
  EXPECT_FALSE(lines[0].is_stderr());
  err << "oops\n" << std::flush;
  ASSERT_TRUE(driver.run_until([&] { return lines.size() == 2; }));
  EXPECT_TRUE(lines[1].is_stderr());
  out << "no newline" << std::flush;  // A partial line is handed out after a while.
  ASSERT_TRUE(driver.run_until([&] { return lines.size() == 3; }));
  EXPECT_EQ(lines[2].lines(0), "no newline");
  out << " and the rest\n" << std::flush;
  ASSERT_TRUE(driver.run_until([&] { return lines.size() == 4; }));
  EXPECT_EQ(lines[3].lines(0), " and the rest");
  out << "last words" << std::flush;
  monitor.remove(worker);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[4].lines(0), "last words");
}

TEST(LogMonitor, FollowsAFileThatIsRotated) {
  ScratchDir dir;
  AsioDriver driver;
  Settings settings;
  settings.log_batch_interval_ms = 1;
  std::string text;
  LogMonitor monitor(driver.loop(), settings, dir.path("logs"), [&](const proto::HeadEvent& event) {
    for (const auto& batch : event.logs()) text += text_of({batch});
  });
  Rng rng(1);
  WorkerId worker = WorkerId::random(rng);
  std::string path = dir.path("logs/worker-1.out");
  std::ofstream out(path);
  out << ":task_name:f\nfirst\n" << std::flush;
  monitor.add(worker, 42, path, dir.path("logs/worker-1.err"));
  ASSERT_TRUE(driver.run_until([&] { return text == "[f]first|"; }));
  out << "last of the old\n" << std::flush;
  std::filesystem::rename(path, path + ".1");
  std::ofstream again(path);
  again << "first of the new\n" << std::flush;
  ASSERT_TRUE(driver.run_until([&] {
    return text == "[f]first|[f]last of the old|[f]first of the new|" ||
           text == "[f]first|[f]last of the old|first of the new|";
  }));
  again << "more\n" << std::flush;
  ASSERT_TRUE(driver.run_until([&] { return text.ends_with("more|"); }));
  monitor.remove(worker);
}

// The pause between batches would never end here.
TEST(LogMonitor, AFlushPublishesWhatIsWritten) {
  ScratchDir dir;
  AsioDriver driver;
  Settings settings;
  settings.log_batch_interval_ms = 3'600'000;
  settings.log_line_max_bytes = 1 << 20;
  std::string text;
  LogMonitor monitor(driver.loop(), settings, dir.path("logs"), [&](const proto::HeadEvent& event) {
    for (const auto& batch : event.logs()) text += text_of({batch});
  });
  Rng rng(1);
  const std::string mine = job_id_from_int(1).binary(), other = job_id_from_int(2).binary();
  auto worker = [&](int pid, const std::string& job) {
    const std::string path = dir.path("logs/worker-" + std::to_string(pid));
    const WorkerId id = WorkerId::random(rng);
    monitor.add(id, pid, path + ".out", path + ".err");
    monitor.set_job(id, job);
    return std::ofstream(path + ".out");
  };
  std::ofstream first = worker(1, mine), second = worker(2, other);
  bool done = false;
  first << "a line\nand no end" << std::flush;
  second << "of another job\nits next line is not complete" << std::flush;
  monitor.flush(mine, [&] {
    EXPECT_EQ(text, "[]a line|[]of another job|[]and no end|");
    done = true;
  });
  EXPECT_TRUE(done);
  // Nothing new: the answer does not wait for anything.
  done = false;
  monitor.flush(mine, [&] { done = true; });
  EXPECT_TRUE(done);
  EXPECT_EQ(text, "[]a line|[]of another job|[]and no end|");
  // More than is read at a time.
  text.clear();
  const std::string line(1 << 19, 'x');
  for (int i = 0; i < 20; ++i) first << "\n" << line;
  first << "\nlast\n" << std::flush;
  done = false;
  monitor.flush(mine, [&] { done = true; });
  EXPECT_FALSE(done);
  ASSERT_TRUE(driver.run_until([&] { return done; }));
  EXPECT_TRUE(text.ends_with("|last|"));
  EXPECT_GT(text.size(), 20 * line.size());
  // A worker that ends meanwhile is waited for no longer.
  for (int i = 0; i < 20; ++i) second << "\n" << line;
  second << std::flush;
  const WorkerId third = WorkerId::random(rng);
  monitor.add(third, 3, dir.path("logs/worker-3.out"), dir.path("logs/worker-3.err"));
  std::ofstream(dir.path("logs/worker-3.out")) << std::string(10 << 20, 'y');
  done = false;
  monitor.flush(mine, [&] { done = true; });
  monitor.remove(third);
  ASSERT_TRUE(driver.run_until([&] { return done; }));
}

}  // namespace
}  // namespace rt::node
