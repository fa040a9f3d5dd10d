// Builders for tests of bundles of placement groups in the node-manager's core.
#pragma once

#include <gmock/gmock.h>

#include "core_fixture.h"

namespace rt::node {

class BundleTest : public NodeCoreTest {
 protected:
  using Amounts = std::map<std::string, double>;

  GroupId group(uint64_t n = 1) const {
    Rng rng(n);
    return make_group_id(job(), rng);
  }
  // Asks for bundles with the indexes 0, 1, ... of a group.
  void prepare(int64_t epoch, const std::vector<Amounts>& bundles, uint64_t of_group = 1) {
    std::map<int, Amounts> by_index;
    for (size_t i = 0; i < bundles.size(); ++i) by_index[static_cast<int>(i)] = bundles[i];
    prepare_some(epoch, by_index, of_group);
  }
  void prepare_some(int64_t epoch, const std::map<int, Amounts>& bundles, uint64_t of_group = 1) {
    proto::PrepareBundlesRequest request;
    request.set_group_id(group(of_group).binary());
    request.set_job_id(job().binary());
    request.set_epoch(epoch);
    for (const auto& [index, amounts] : bundles) {
      auto* bundle = request.add_bundles();
      bundle->set_index(index);
      resources_of(amounts).to_proto(bundle->mutable_resources());
    }
    core->prepare_bundles(request, now());
    core->check_invariants();
  }
  // The answer that the core gave first, which must be to this attempt; empty if it succeeded.
  std::string answer(int64_t epoch, uint64_t of_group = 1) {
    auto prepared = RecordingSink::take(sink.prepared);
    EXPECT_EQ(prepared.group, group(of_group));
    EXPECT_EQ(prepared.epoch, epoch);
    EXPECT_EQ(prepared.reply.ok(), prepared.reply.why_not().empty());
    return prepared.reply.why_not();
  }
  void reserve(int64_t epoch, const std::vector<Amounts>& bundles, uint64_t of_group = 1) {
    prepare(epoch, bundles, of_group);
    EXPECT_EQ(answer(epoch, of_group), "");
  }
  void return_bundles(int64_t epoch, const std::vector<int>& indexes = {}, uint64_t of_group = 1,
                      proto::ExitInfo::Kind kind = proto::ExitInfo::GROUP_REMOVED) {
    proto::ReturnBundlesRequest request;
    request.set_group_id(group(of_group).binary());
    request.set_epoch(epoch);
    request.mutable_indexes()->Add(indexes.begin(), indexes.end());
    request.mutable_why()->set_kind(kind);
    request.mutable_why()->set_message("its placement group was removed");
    core->return_bundles(request, now());
    core->check_invariants();
  }
  proto::LeaseDemand demand_in(int index, int want, Amounts amounts = {{"CPU", 1}},
                               uint64_t class_id = 1, uint64_t of_group = 1) {
    proto::LeaseDemand d = demand(want, std::move(amounts), class_id);
    d.set_group_id(group(of_group).binary());
    d.set_bundle_index(index);
    d.set_group_epoch(1'000'000);
    return d;
  }
  proto::CreateActorRequest actor_in(int index, uint32_t n, Amounts placement, Amounts lifetime,
                                     uint64_t of_group = 1) {
    proto::CreateActorRequest request = actor(n, std::move(placement), std::move(lifetime));
    request.mutable_spec()->mutable_creation()->set_group_id(group(of_group).binary());
    request.mutable_spec()->mutable_creation()->set_bundle_index(-1);
    request.set_bundle_index(index);
    return request;
  }
  const Bundle* bundle(int index, uint64_t of_group = 1) const {
    return core->view().bundles().find({group(of_group), index});
  }
  double free_in(int index, const std::string& name = "CPU", uint64_t of_group = 1) const {
    return bundle(index, of_group)->room.resources().available().get(name);
  }
  // The room that the lease's worker holds its resources in: the index of the bundle, or -1.
  int room_of(const RecordingSink::Grant& grant) const {
    return core->view().worker(worker_of(grant))->room.index;
  }
  // The demands that the head would hear of, one per line.
  std::string reported() const {
    proto::ResourceReport report;
    core->view().fill_report(&report);
    std::string text;
    for (const auto& demand : report.demands())
      text +=
          fmt::format("{} in {}: {}\n", demand.count(), demand.bundle_index(), demand.waits_for());
    return text;
  }
};

}  // namespace rt::node
