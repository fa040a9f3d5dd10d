// Ids, the random number generator, Result and shortened text (common/base).
#include <gtest/gtest.h>

#include <set>

#include "common/base/ids.h"
#include "common/base/readable.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/token.h"

namespace rt {
namespace {

TEST(Ids, HexRoundTripsAndRejectsWhatIsNotHex) {
  Rng rng(7);
  NodeId id = NodeId::random(rng);
  EXPECT_EQ(NodeId::from_hex(id.hex()), id);
  EXPECT_EQ(NodeId::from_binary(id.binary()), id);
  for (const char* bad : {"abc", "zz", "0g"}) EXPECT_TRUE(from_hex(bad).empty()) << bad;
  EXPECT_TRUE(NodeId::from_binary("short").is_nil());
  EXPECT_TRUE(NodeId::from_hex("").is_nil());
}

template <class Id>
void every_byte_counts() {
  Id id;
  for (size_t at = 0; at < Id::kSize; ++at) id.data()[at] = static_cast<uint8_t>(11 + 37 * at);
  EXPECT_EQ(Id(id), id);
  for (size_t at = 0; at < Id::kSize; ++at) {
    Id other = id;
    other.data()[at] ^= 1;
    EXPECT_NE(other, id) << at << " of " << Id::kSize;
  }
}

TEST(Ids, EveryByteCounts) {
  every_byte_counts<JobId>();
  every_byte_counts<ActorId>();
  every_byte_counts<TaskId>();
  every_byte_counts<GroupId>();
  every_byte_counts<ObjectId>();
}

TEST(Ids, TaskActorAndObjectIdsNameTheirParents) {
  JobId job = job_id_from_int(0x01020304);
  EXPECT_EQ(job_id_to_int(job), 0x01020304u);
  ActorId actor = make_actor_id(job, 11, 22);
  EXPECT_EQ(job_of(actor), job);
  TaskId task = make_task_id(5, actor);
  EXPECT_EQ(actor_of(task), actor);
  EXPECT_EQ(job_of(task), job);
  EXPECT_EQ(job_of(make_task_id(5, job)), job);
  ObjectId object = make_object_id(task, 3);
  EXPECT_EQ(task_of(object), task);
  EXPECT_EQ(index_of(object), 3u);
  EXPECT_NE(make_object_id(task, 4).hash(), object.hash());
}

TEST(Ids, APlacementGroupNamesItsJobAndIsUnique) {
  Rng rng(7);
  JobId job = job_id_from_int(0x01020304);
  GroupId group = make_group_id(job, rng);
  EXPECT_EQ(group.binary().size(), 18u);
  EXPECT_EQ(job_of(group), job);
  EXPECT_EQ(group.binary().substr(14), job.binary());
  EXPECT_NE(make_group_id(job, rng), group);
  EXPECT_EQ(GroupId::nil().hex(), std::string(36, 'f'));
}

TEST(Rng, ARepeatedSeedRepeatsAndBoundsHold) {
  Rng a(42), b(42);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    uint64_t value = a.below(10);
    EXPECT_EQ(value, b.below(10));
    EXPECT_LT(value, 10u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 10u);
}

Result<int> half(int n) {
  if (n % 2 != 0) return make_error(Code::kInvalid, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  RT_ASSIGN(int h, half(n));
  RT_ASSIGN(int q, half(h));
  return q;
}

TEST(Status, ErrorsPassThroughAndUncheckedAccessThrows) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_THROW((void)quarter(6).value(), std::runtime_error);
  EXPECT_EQ(errno_error("open x", 2).message, "open x: No such file or directory");
  EXPECT_EQ(code_name(Code::kUnschedulable), "unschedulable");
  EXPECT_EQ(code_name(static_cast<Code>(999)), "unknown");
}

TEST(Readable, LongTextIsShortenedInTheMiddle) {
  EXPECT_EQ(shortened("", 4), "");
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcdefgh", 4), "ab\n[... 4 bytes left out ...]\ngh");
  EXPECT_EQ(shortened("abcdefgh", 5), "ab\n[... 4 bytes left out ...]\ngh");
}

TEST(Secret, OnlyTheSameIsTheSame) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* other : {"", "a", "ab", "abcd", "abd", "abcabc"}) {
    EXPECT_FALSE(same_secret(other, "abc")) << other;
    EXPECT_FALSE(same_secret("abc", other)) << other;
  }
  EXPECT_FALSE(same_secret("a", "aa"));
}

}  // namespace
}  // namespace rt
