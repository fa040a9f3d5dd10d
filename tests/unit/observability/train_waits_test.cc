// Samples of ranks say where each spends its time, and which one the others wait for.
#include "observability/state/train_waits.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace rt::state {
namespace {

// Samples of a process whose training thread was seen in given places.
class Samples {
 public:
  Samples() {
    const uint32_t other = frame("main", "/usr/lib/python3.11/threading.py");
    auto* stack = all_.add_stacks();
    stack->add_frames(other);
    stack->set_off_cpu(1000);
  }

  uint32_t frame(const std::string& function, const std::string& file, int line = 1) {
    auto* added = all_.add_frames();
    added->set_function(function);
    added->set_file(file);
    added->set_line(line);
    return static_cast<uint32_t>(all_.frames_size() - 1);
  }
  uint32_t native(const std::string& function, const std::string& module) {
    auto* added = all_.add_frames();
    added->set_function(function);
    added->set_module(module);
    added->set_native(true);
    return static_cast<uint32_t>(all_.frames_size() - 1);
  }

  // Frames below the user's train(), the outermost first.
  Samples& seen(int64_t on_cpu, int64_t off_cpu, const std::vector<uint32_t>& frames) {
    auto* stack = all_.add_stacks();
    stack->add_frames(frame("Thread.run", "/usr/lib/python3.11/threading.py"));
    stack->add_frames(frame("RayTrainWorker._train", "/x/ray/train/worker.py", 100));
    stack->add_frames(frame("train", "/of/me/a.py", 7));
    for (uint32_t one : frames) stack->add_frames(one);
    stack->set_on_cpu(on_cpu);
    stack->set_off_cpu(off_cpu);
    return *this;
  }

  Samples& computes(int64_t count) { return seen(count, 0, {frame("step", "/of/me/a.py", 9)}); }
  Samples& sleeps(int64_t count) { return seen(0, count, {frame("step", "/of/me/a.py", 9)}); }
  // DistributedDataParallel waits in this way within backward().
  Samples& communicates(int64_t count) {
    return seen(0, count,
                {frame("Tensor.backward", "/usr/lib/python3/dist-packages/torch/_tensor.py"),
                 native("torch::autograd::Engine::execute()", "libtorch_cpu.so"),
                 native("c10d::Reducer::finalize_backward()", "libtorch_cpu.so"),
                 native("pthread_cond_wait", "libc.so.6")});
  }
  Samples& waits_in_report(int64_t count) {
    return seen(0, count,
                {frame("report", "/x/ray/train/context.py"),
                 frame("Reporter._report", "/x/ray/train/reporter.py"),
                 frame("Session.meet", "/x/ray/train/session.py")});
  }
  Samples& uploads(int64_t count) {
    return seen(count, 0,
                {frame("report", "/x/ray/train/context.py"),
                 frame("Reporter._place", "/x/ray/train/reporter.py"),
                 frame("copy", "/x/ray/train/storage.py")});
  }
  Samples& loads(int64_t count) {
    return seen(count, 0,
                {frame("_BaseDataLoaderIter.__next__",
                       "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"),
                 frame("MyData.__getitem__", "/of/me/data.py")});
  }

  const proto::StackSamples& all() const { return all_; }

 private:
  proto::StackSamples all_;
};

RankWaits rank_of(int64_t number, const std::vector<Samples>& parts, const char* node = "") {
  RankWaits rank;
  rank.rank = number;
  rank.pid = 4000 + number;
  rank.node_id = *node ? node : fmt::format("{:02x}ffffffffffffffff", number);
  rank.node_ip = "10.0.0.2";
  for (const Samples& part : parts) EXPECT_TRUE(add_samples(part.all(), &rank));
  return rank;
}

// A rank that waits this percentage of the time in both parts of a look of 2 s.
RankWaits waiting(int64_t number, int percentage, const char* node = "") {
  Samples part;
  part.communicates(percentage).computes(100 - percentage);
  return rank_of(number, {part, part}, node);
}

TEST(TrainWaitsTest, EachMomentHasAPurpose) {
  Samples samples;
  samples.computes(30).sleeps(10).communicates(20).waits_in_report(15).uploads(5).loads(20);
  const RankWaits rank = rank_of(0, {samples});
  EXPECT_EQ(rank.time.all(), 100);
  EXPECT_EQ(rank.time.of(Doing::kOwn), 30);
  EXPECT_EQ(rank.time.of(Doing::kOwnAsleep), 10);
  EXPECT_EQ(rank.time.of(Doing::kCollective), 20);
  EXPECT_EQ(rank.time.of(Doing::kForRanks), 15);
  EXPECT_EQ(rank.time.of(Doing::kReport), 5);
  EXPECT_EQ(rank.time.of(Doing::kData), 20);
  EXPECT_DOUBLE_EQ(rank.time.waiting(), 0.35);
  EXPECT_EQ(rank.functions, (std::map<std::string, int64_t>{{"step (a.py)", 40}}));
  const Json json = rank_json(rank);
  EXPECT_EQ(json["where"], "step (a.py:9)");
  EXPECT_EQ(json["samples"], 100);
  EXPECT_EQ(json["functions"][0]["name"], "step (a.py)");
  EXPECT_DOUBLE_EQ(json["functions"][0]["share"].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(json["shares"]["for_ranks"].get<double>(), 0.15);
}

TEST(TrainWaitsTest, PlacesAreTheUsers) {
  auto place = [](const Samples& samples) {
    return rank_json(rank_of(0, {samples}))["where"].get<std::string>();
  };
  EXPECT_EQ(place(Samples().communicates(1)),
            "train (a.py:7), in a collective of torch.distributed");
  EXPECT_EQ(place(Samples().waits_in_report(1)),
            "train (a.py:7), in report(), waiting for other ranks");
  EXPECT_EQ(place(Samples().uploads(1)), "train (a.py:7), in report()");
  EXPECT_EQ(place(Samples().loads(1)), "MyData.__getitem__ (data.py:1), waiting for data");
  EXPECT_EQ(place(Samples().sleeps(1)), "step (a.py:9), asleep");
  Samples backward;
  backward.seen(0, 1, {backward.frame("backward", "/usr/lib/python3/dist-packages/torch/a.py")});
  EXPECT_EQ(place(backward), "train (a.py:7), asleep in backward");
  Samples barrier;
  barrier.seen(0, 1,
               {barrier.frame("barrier", "/x/ray/train/collective.py"),
                barrier.frame("Session.meet", "/x/ray/train/session.py")});
  EXPECT_EQ(place(barrier), "train (a.py:7), in barrier(), waiting for other ranks");
}

TEST(TrainWaitsTest, AProcessWithoutTheFunctionIsNotARank) {
  RankWaits rank;
  EXPECT_FALSE(add_samples(Samples().all(), &rank));
  EXPECT_EQ(rank.time.all(), 0);
}

TEST(TrainWaitsTest, TheStragglerIsTheRankThatWaitsLeast) {
  const RankVerdict found = judge({waiting(0, 61), waiting(1, 3), waiting(2, 64)}, 2, 0);
  EXPECT_EQ(found.verdict, "STRAGGLER");
  EXPECT_EQ(found.stragglers, std::vector<int64_t>{1});
  EXPECT_EQ(found.sentence,
            "Rank 1 on node 01ffffffffff (10.0.0.2) is the straggler: in 2.0 s it waits 3 % of the "
            "time for other ranks, in collectives and report(), while the others wait 61 to 64 %. "
            "It spends 97 % in step (a.py).");
}

TEST(TrainWaitsTest, SlowDataAndReportsAreTheReason) {
  Samples loads, uploads, sleeps;
  loads.loads(70).computes(30);
  uploads.uploads(50).computes(40).communicates(10);
  sleeps.sleeps(80).computes(20);
  auto sentence = [](const Samples& late) {
    return judge({rank_of(0, {late, late}), waiting(1, 66)}, 2, 0).sentence;
  };
  EXPECT_TRUE(
      sentence(loads).ends_with("while rank 1 waits 66 %. It spends 70 % waiting for data."))
      << sentence(loads);
  EXPECT_TRUE(sentence(uploads).ends_with(
      "It spends 50 % in report(), uploading a checkpoint or sending metrics."))
      << sentence(uploads);
  EXPECT_TRUE(sentence(sleeps).ends_with("It spends 100 % asleep in step (a.py)."))
      << sentence(sleeps);
}

TEST(TrainWaitsTest, RanksOfASlowNodeAreNamedTogether) {
  const RankVerdict found = judge({waiting(0, 50), waiting(1, 55), waiting(2, 5, "abcdef012345678"),
                                   waiting(3, 2, "abcdef012345678"), waiting(4, 52)},
                                  2, 0);
  EXPECT_EQ(found.stragglers, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(found.sentence.starts_with(
      "Ranks 2, 3 on node abcdef012345 (10.0.0.2) are the stragglers: in 2.0 s they wait 2 to 5 %"))
      << found.sentence;
}

TEST(TrainWaitsTest, NobodyIsNamedOnNoise) {
  // Small differences say nothing, however often they are seen.
  EXPECT_EQ(judge({waiting(0, 4), waiting(1, 12), waiting(2, 6)}, 2, 0).verdict, "NONE");
  EXPECT_EQ(judge({waiting(0, 50), waiting(1, 63)}, 2, 0).verdict, "NONE");
  Samples most, least;
  most.communicates(5000).computes(5000);
  least.communicates(4000).computes(6000);
  EXPECT_EQ(judge({rank_of(0, {most, most}), rank_of(1, {least, least})}, 200, 0).verdict, "NONE");
  // A difference of 17 % among 50 samples of each rank may be chance.
  Samples less, more;
  less.communicates(10).computes(15);
  more.communicates(14).computes(11);
  EXPECT_EQ(judge({rank_of(0, {less, less}), rank_of(1, {more, more})}, 2, 0).verdict, "NONE");
  // A rank that is late once is no straggler: in the other part of the time the others are late.
  Samples late, waits;
  late.computes(100);
  waits.communicates(70).computes(30);
  Samples on_time;
  on_time.communicates(20).computes(80);
  EXPECT_EQ(judge({rank_of(0, {late, on_time}), rank_of(1, {waits, late})}, 2, 0).verdict, "NONE");
  // More than half of the ranks are no stragglers: a rank that waits more has less to do.
  EXPECT_EQ(judge({waiting(0, 5), waiting(1, 6), waiting(2, 60)}, 2, 0).verdict, "NONE");
}

TEST(TrainWaitsTest, CommunicationThatTakesTheTimeIsSaid) {
  const RankVerdict found = judge({waiting(0, 50), waiting(1, 55)}, 2, 0);
  EXPECT_EQ(found.sentence,
            "No straggler: in 2.0 s the ranks waited 50 to 55 % of the time for each other. "
            "Communication itself takes the time, or each is late in turn.");
  EXPECT_EQ(judge({waiting(0, 5), waiting(1, 5)}, 2, 0).sentence,
            "No straggler: in 2.0 s the ranks waited 5 % of the time for each other.");
}

TEST(TrainWaitsTest, RanksThatAllWaitAreStuck) {
  Samples reports;
  reports.waits_in_report(100);
  const RankVerdict found = judge({rank_of(0, {reports, reports}), waiting(1, 100)}, 2, 100);
  EXPECT_EQ(found.verdict, "ALL_WAIT");
  EXPECT_TRUE(found.sentence.starts_with(
      "All ranks have waited for each other for 2.0 s: rank 0 at train (a.py:7), in report(), "
      "waiting for other ranks; rank 1 at train (a.py:7), in a collective of torch.distributed."))
      << found.sentence;
}

TEST(TrainWaitsTest, TooLittleToTell) {
  EXPECT_EQ(judge({}, 2, 0).verdict, "UNKNOWN");
  EXPECT_EQ(judge({waiting(0, 5)}, 2, 0).verdict, "UNKNOWN");
  Samples few;
  few.computes(10);
  const RankVerdict seldom = judge({rank_of(0, {few}), waiting(1, 90)}, 2, 0);
  EXPECT_EQ(seldom.verdict, "UNKNOWN");
  EXPECT_NE(seldom.sentence.find("Rank 0 was seen 10 times"), std::string::npos);
  const RankVerdict slow = judge({waiting(0, 5), waiting(1, 90)}, 2, 7.2);
  EXPECT_EQ(slow.verdict, "UNKNOWN");
  EXPECT_EQ(slow.sentence, "A step takes 7.2 s: look for at least 15 s to compare ranks.");
  EXPECT_EQ(judge({waiting(0, 5), waiting(1, 90)}, 15, 7.2).verdict, "STRAGGLER");
}

}  // namespace
}  // namespace rt::state
