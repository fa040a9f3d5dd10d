// The packed form of task events, the digest of a batch, and how both stand forged input.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <tuple>

#include "observability/events/task_digest.h"
#include "observability/events/task_event_writer.h"
#include "observability/events/wire.h"
#include "tests/unit/observability/event_samples.h"

namespace rt {
namespace {

std::string compressed(std::string_view raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 1));
  return out;
}

std::string decompressed(std::string_view packed) {
  std::string raw(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  EXPECT_EQ(ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size()), raw.size());
  return raw;
}

TEST(TaskEvents, ABatchIsUnchangedAfterPackingAndUnpacking) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2, 3, 1)});
  batch.events[1].attempt = 4;
  batch.is_driver = batch.is_cpp = true;
  batch.node_hex = "ef01";
  batch.pid = 4711;
  auto unpacked = unpack_task_events(pack_task_events(batch));
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(unpacked->node_ip, "10.0.0.7");
  EXPECT_EQ(unpacked->worker_hex, "abcd");
  EXPECT_TRUE(unpacked->is_driver && unpacked->is_cpp);
  EXPECT_EQ(unpacked->node_hex, "ef01");
  EXPECT_EQ(unpacked->pid, 4711u);
  EXPECT_EQ(unpacked->strings, batch.strings);
  ASSERT_EQ(unpacked->events.size(), 2u);
  EXPECT_EQ(unpacked->events[0].task, batch.events[0].task);
  EXPECT_EQ(unpacked->events[1].attempt, 4u);
  EXPECT_EQ(unpacked->events[1].error, 3u);
  EXPECT_EQ(unpacked->events[1].kind, 1);
  EXPECT_EQ(unpacked->events[1].start_us, batch.events[1].start_us);
}

TEST(TaskEvents, ParentCreationTimeResourcesAndCallSiteAreKept) {
  TaskEventBatchData batch = batch_of({event_of(1, 2)});
  batch.events[0].parent = batch.events[0].resources = batch.events[0].call_site = 3;
  batch.events[0].created_us = 1'700'000'000'000'000;
  auto unpacked = unpack_task_events(pack_task_events(batch));
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  const TaskEvent& event = unpacked->events[0];
  EXPECT_EQ(std::tie(event.parent, event.resources, event.call_site), std::tuple(3u, 3u, 3u));
  EXPECT_EQ(event.created_us, batch.events[0].created_us);
}

TEST(TaskEvents, EachTextIsKeptAndMustBeThere) {
  for (auto text : kCommonTexts) {
    TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2)});
    batch.events[1].*text = 3;
    auto unpacked = unpack_task_events(pack_task_events(batch));
    ASSERT_TRUE(unpacked) << unpacked.error().message;
    EXPECT_EQ(static_cast<const TaskEventCommon&>(unpacked->events[1]), batch.events[1]);
    batch.events[1].*text = 1000;
    EXPECT_FALSE(unpack_task_events(pack_task_events(batch)));
  }
}

// A batch like those of a busy worker: owners and kinds alternate, and some times are unknown or
// go backwards.
TaskEventBatchData busy_batch() {
  TaskEventBatchData batch = batch_of({});
  batch.strings.push_back(std::string(WorkerId::kSize, 'w') + "10.0.0.8");
  batch.strings.push_back(std::string(GroupId::kSize, 'g'));
  for (uint32_t i = 0; i < 5000; ++i) {
    TaskEvent event = event_of(1 + i % 2, 2, i % 7 == 0 ? 3 : 0,
                               i % 3 ? TaskEvent::kTask : TaskEvent::kActorMethod);
    event.task = i % 3 ? make_task_id(0x9e3779b97f4a7c15ull + i, job_id_from_int(1))
                       : make_task_id(~uint64_t{0} - i,
                                      make_actor_id(job_id_from_int(1 + i % 5), i % 11, 5));
    event.attempt = i % 4;
    event.submission_recorded = i % 3 == 1;
    event.owner = i % 2 ? 5 : 0;
    event.placement_group = i % 9 == 4 ? 6 : 0;
    event.start_us += i % 100 ? i * 257 : -int64_t{i};
    event.created_us = i % 5 ? event.start_us - 3 * i : 0;
    event.execute_us = int64_t{i} * 1'000'003;  // Up to more than an hour.
    batch.events.push_back(event);
  }
  return batch;
}

TEST(TaskEvents, EveryFieldOfEveryEventSurvives) {
  const TaskEventBatchData batch = busy_batch();
  auto unpacked = unpack_task_events(pack_task_events(batch));
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  ASSERT_EQ(unpacked->events.size(), batch.events.size());
  for (size_t i = 0; i < batch.events.size(); ++i) {
    const TaskEvent &found = unpacked->events[i], &sent = batch.events[i];
    ASSERT_EQ(static_cast<const TaskEventCommon&>(found), sent) << i;
    ASSERT_EQ(found.task, sent.task) << i;
    ASSERT_EQ(std::tie(found.start_us, found.created_us, found.deserialize_us, found.execute_us,
                       found.store_us),
              std::tie(sent.start_us, sent.created_us, sent.deserialize_us, sent.execute_us,
                       sent.store_us))
        << i;
  }
}

TEST(TaskEvents, ManyEventsPackSmall) {
  TaskEventBatchData batch = batch_of({});
  for (uint32_t i = 0; i < 10'000; ++i) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().task = make_task_id(1000 + i, job_id_from_int(1));
    batch.events.back().start_us += i * 257 + i % 13;
    batch.events.back().created_us = batch.events.back().start_us - 500;
    batch.events.back().execute_us = 200 + i % 17;
  }
  EXPECT_LT(pack_task_events(batch).size(), 10'000u * 3);
  // A burst of tasks packs smaller still, because their times hardly differ.
  for (uint32_t i = 0; i < 10'000; ++i) {
    batch.events[i].start_us = 1'700'000'000'000'000 + i + i % 3;
    batch.events[i].created_us = batch.events[i].start_us - 500;
    batch.events[i].execute_us = i % 2;
  }
  EXPECT_LT(pack_task_events(batch).size(), 10'000u);
}

// A worker uses one writer for all its batches: after clear(), sizes, times and the numbers of
// strings are those of the new batch alone.
TEST(TaskEvents, AWriterIsReusableAfterClear) {
  TaskEventWriter writer;
  TaskEventSource source;
  source.worker_hex = "abcd";
  const TaskEventBatchData batch = busy_batch();
  size_t string_bytes = 0;
  for (const std::string& text : batch.strings) string_bytes += text.size();
  for (int round = 1; round <= 2; ++round) {
    EXPECT_EQ(writer.batch(), static_cast<uint64_t>(round));
    EXPECT_EQ(writer.string_bytes(), 0u);
    EXPECT_EQ(writer.string(""), 0u);
    for (size_t i = 1; i < batch.strings.size(); ++i) EXPECT_EQ(writer.string(batch.strings[i]), i);
    EXPECT_EQ(writer.string(batch.strings.back()), batch.strings.size() - 1);
    EXPECT_EQ(writer.string_bytes(), string_bytes);  // A repeated string is stored once.
    const size_t first = round == 1 ? 0 : 2000, end = first + 300;
    int64_t from = INT64_MAX, to = 0;
    for (size_t i = first; i < end; ++i) {
      const TaskEvent& event = batch.events[i];
      writer.add(event);
      from = std::min(from, event.start_us);
      to = std::max(to, event.start_us + event.deserialize_us + event.execute_us + event.store_us);
    }
    EXPECT_EQ(writer.size(), 300u);
    EXPECT_EQ(writer.first_task(), batch.events[first].task);
    EXPECT_EQ(std::tuple(writer.min_time_us(), writer.max_time_us()), std::tuple(from, to));
    auto read = unpack_task_events(writer.events(source));
    auto digest = unpack_task_digest(writer.digest(source));
    ASSERT_TRUE(read && digest);
    ASSERT_EQ(read->events.size(), 300u);
    uint32_t counted = 0;
    for (const auto& group : digest->groups) counted += group.events;
    EXPECT_EQ(counted, 300u);
    for (size_t i = 0; i < 300; ++i) {
      ASSERT_EQ(read->events[i].task, batch.events[first + i].task);
      ASSERT_EQ(read->events[i].start_us, batch.events[first + i].start_us);
      EXPECT_TRUE(digest->may_have_task(read->events[i].task));
    }
    EXPECT_EQ(read->strings, batch.strings);
    writer.clear();
  }
}

TEST(TaskEvents, AnEventProcessIsPackedIntoOneString) {
  const EventProcess process{std::string(WorkerId::kSize, '\0'), std::string(NodeId::kSize, 'n'),
                             4711};
  const auto read = unpack_event_process(pack_event_process(process));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::tuple(read->worker_id, read->node_id, read->pid),
            std::tuple(process.worker_id, process.node_id, process.pid));
  const std::string ids(WorkerId::kSize + NodeId::kSize, 'x');
  for (const std::string& none : {std::string(), ids, ids.substr(1) + "1", ids + "1x", ids + "x"})
    EXPECT_FALSE(unpack_event_process(none)) << none;
}

TEST(TaskEvents, NumbersOfEveryWidthSurvive) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    for (size_t count : {size_t{1}, size_t{3}, events::kBlock - 1, events::kBlock}) {
      std::vector<uint64_t> numbers(count), read(count);
      for (size_t i = 0; i < count; ++i)
        numbers[i] = 77 + (bits == 0 ? 0 : (0x9e3779b97f4a7c15ull * (i + 1)) >> (64 - bits));
      std::string packed;
      events::put_column(packed, numbers);
      ByteReader in(packed);
      ASSERT_TRUE(events::get_column(in, read)) << bits;
      EXPECT_EQ(read, numbers) << bits << " bits, " << count;
      EXPECT_EQ(in.left(), 0u);
    }
  }
}

// Splits a packed batch into its decompressed head and its columns.
std::pair<std::string, std::string> parts_of(const std::string& packed) {
  ByteReader in(packed);
  EXPECT_EQ(in.number<uint32_t>(), events::kBatchVersion);
  std::string head = decompressed(in.text());
  return {head, std::string(in.text(in.left()))};
}

std::string packed_of(std::string_view head, std::string_view columns,
                      uint32_t version = events::kBatchVersion) {
  std::string packed;
  events::put(packed, version);
  events::put_string(packed, compressed(head));
  return packed += columns;
}

void expect_sane(const Result<TaskEventBatchData>& read) {
  for (size_t i = 0; read && i < read->events.size(); ++i) {
    EXPECT_TRUE(names_strings(read->events[i], read->strings.size()));
  }
}

// No forged batch makes its reader read beyond the end (the sanitizers would report it) or return
// the number of a string that does not exist.
TEST(TaskEvents, ForgedBatchesAreRefused) {
  TaskEventBatchData batch = busy_batch();
  batch.events.resize(131);  // More than one block of numbers.
  const auto [head, columns] = parts_of(pack_task_events(batch));
  ASSERT_TRUE(unpack_task_events(packed_of(head, columns)));
  EXPECT_FALSE(unpack_task_events(packed_of(head + "x", columns)));
  EXPECT_FALSE(unpack_task_events(packed_of(head, columns + "x")));
  for (size_t size = 0; size < head.size(); ++size)
    EXPECT_FALSE(unpack_task_events(packed_of(head.substr(0, size), columns))) << size;
  for (size_t size = 0; size < columns.size(); ++size)
    EXPECT_FALSE(unpack_task_events(packed_of(head, columns.substr(0, size)))) << size;
  for (int wrong : {0x00, 0x03, 0x7f, 0x80, 0xff}) {
    for (size_t at = 0; at < head.size(); ++at) {
      std::string forged = head;
      forged[at] = static_cast<char>(wrong);
      expect_sane(unpack_task_events(packed_of(forged, columns)));
    }
    for (size_t at = 0; at < columns.size(); ++at) {
      std::string forged = columns;
      forged[at] = static_cast<char>(wrong);
      expect_sane(unpack_task_events(packed_of(head, forged)));
    }
  }
}

TEST(TaskEvents, AnythingElseIsRefused) {
  std::string packed = pack_task_events(batch_of({event_of(1, 2)}));
  EXPECT_FALSE(unpack_task_events(""));
  EXPECT_FALSE(unpack_task_events("not zstd at all"));
  EXPECT_FALSE(unpack_task_events(packed.substr(0, packed.size() / 2)));
  auto [head, columns] = parts_of(packed);
  EXPECT_TRUE(unpack_task_events(packed_of(head, columns)));
  for (uint32_t version : {0u, 2u}) {
    auto read = unpack_task_events(packed_of(head, columns, version));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message,
              "not a batch of task events: version " + std::to_string(version) + " instead of 1");
  }
  // A decompression bomb.
  EXPECT_FALSE(unpack_task_events(packed_of(std::string(300u << 20, '\0'), columns)));
  EXPECT_FALSE(unpack_task_events(pack_task_events(batch_of({event_of(99, 2)}))));
  auto intact = unpack_task_events(packed);
  EXPECT_TRUE(intact);
}

TEST(TaskDigest, GroupsWhatIsAlike) {
  TaskEventBatchData batch =
      batch_of({event_of(1, 2), event_of(1, 2), event_of(1, 2, 3), event_of(1, 2)});
  auto digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest) << digest.error().message;
  ASSERT_EQ(digest->groups.size(), 2u);
  EXPECT_EQ(digest->groups[0].events, 3u);
  EXPECT_EQ(digest->strings[digest->groups[0].name], "__main__.f");
  EXPECT_EQ(digest->strings[digest->groups[1].error], "ValueError");
  EXPECT_EQ(digest->worker_hex, "abcd");
  EXPECT_EQ(digest->groups[0].job, job_id_from_int(1));
}

TEST(TaskDigest, TasksOfAPlacementGroupAreCountedApart) {
  TaskEventBatchData batch = batch_of({event_of(1, 2), event_of(1, 2), event_of(1, 2)});
  batch.strings.push_back(std::string(GroupId::kSize, 'g'));
  batch.events[1].placement_group = static_cast<uint32_t>(batch.strings.size() - 1);
  const std::string packed = pack_task_digest(batch);
  auto digest = unpack_task_digest(packed);
  ASSERT_TRUE(digest) << digest.error().message;
  ASSERT_EQ(digest->groups.size(), 2u);
  EXPECT_EQ(digest->groups[0].events, 2u);
  EXPECT_EQ(digest->groups[0].placement_group, 0u);
  EXPECT_EQ(digest->strings[digest->groups[1].placement_group], batch.strings.back());
}

// The number at the start is the version, and a digest of any other one is refused.
TEST(TaskDigest, AnotherVersionIsRefused) {
  std::string packed = pack_task_digest(batch_of({event_of(1, 2)}));
  ASSERT_EQ(packed[0], 1);
  for (char version : {0, 2}) {
    packed[0] = version;
    auto digest = unpack_task_digest(packed);
    ASSERT_FALSE(digest);
    EXPECT_EQ(digest.error().message, "not a digest of task events: another version");
  }
}

TEST(TaskDigest, SpansAreNoTasks) {
  TaskEventBatchData batch = batch_of({span_of(1), span_of(1)});
  auto digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_TRUE(digest->groups.empty());
  batch.events.push_back(event_of(1, 2));
  digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest && digest->groups.size() == 1);
  EXPECT_EQ(digest->groups[0].events, 1u);
}

TEST(TaskDigest, KnowsWhichTasksAndParentsItMayHave) {
  const JobId job = job_id_from_int(1);
  TaskEventBatchData batch = batch_of({});
  batch.strings.push_back(make_task_id(77, job).binary());
  for (uint64_t number : {1'000'000u, 1'000'016u, 1'000'032u, 9'000'000u}) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().task = make_task_id(number, job);
    batch.events.back().parent = static_cast<uint32_t>(batch.strings.size() - 1);
  }
  auto digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_EQ(digest->tasks.size(), 2u);
  for (const TaskEvent& event : batch.events) EXPECT_TRUE(digest->may_have_task(event.task));
  EXPECT_FALSE(digest->may_have_task(make_task_id(999'999, job)));
  EXPECT_FALSE(digest->may_have_task(make_task_id(5'000'000, job)));
  EXPECT_TRUE(digest->may_have_child_of(make_task_id(77, job)));
  EXPECT_FALSE(digest->may_have_child_of(make_task_id(78, job)));
  // If the ids have no order, the digest excludes none, and a reader that looks for one has to
  // read the whole batch.
  for (uint64_t i = 1; i < 1000; ++i) {
    batch.events.push_back(event_of(1, 2));
    batch.events.back().task = make_task_id(i * 0x9e3779b97f4a7c15ull, job);
  }
  digest = unpack_task_digest(pack_task_digest(batch));
  ASSERT_TRUE(digest);
  EXPECT_TRUE(digest->tasks.empty() && digest->may_have_task(make_task_id(5'000'000, job)));
}

TEST(TaskDigest, TooManyGroupsMakeNoDigest) {
  TaskEventBatchData batch = batch_of({});
  for (int i = 0; i < 1000; ++i) {
    batch.strings.push_back("name " + std::to_string(i));
    batch.events.push_back(event_of(static_cast<uint32_t>(batch.strings.size() - 1), 2));
  }
  EXPECT_EQ(pack_task_digest(batch), "");
}

TEST(TaskDigest, WhatIsNoDigestIsRefused) {
  std::string good = pack_task_digest(batch_of({event_of(1, 2), event_of(1, 2, 3)}));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(unpack_task_digest(good.substr(0, size))) << size;
  std::string forged = good;
  constexpr size_t kRanges =
      24;  // Bytes of the id ranges at the end: one of tasks, none of parents.
  forged[forged.size() - kRanges - 10] = '\x7f';  // The number of the last group's error.
  EXPECT_FALSE(unpack_task_digest(forged));
}

}  // namespace
}  // namespace rt
