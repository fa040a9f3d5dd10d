// The fixture of the tests of placement groups in the head's core: a driver whose connection
// registers groups, and nodes that answer requests to reserve bundles.
#pragma once

#include "tests/unit/head/core_fixture.h"

namespace rt::head {

class GroupTest : public HeadTest {
 protected:
  using Amounts = std::map<std::string, double>;
  void TearDown() override {
    drop_node_pushes();
    HeadTest::TearDown();
  }
  static constexpr ConnId kOwner = 50;

  proto::RegisterGroupRequest group_request(
      JobId job, const std::vector<Amounts>& bundles,
      proto::GroupSpec::Strategy strategy = proto::GroupSpec::PACK, const std::string& name = "") {
    proto::RegisterGroupRequest request;
    proto::GroupSpec& spec = *request.mutable_spec();
    spec.set_group_id(make_group_id(job, rng).binary());
    spec.set_job_id(job.binary());
    spec.set_name(name);
    spec.set_ray_namespace("ns");
    spec.set_strategy(strategy);
    spec.mutable_owner()->set_worker_id(driver_worker_id(job).binary());
    spec.mutable_owner()->set_node_id(node_id(1).binary());
    for (const Amounts& amounts : bundles)
      set_resources(spec.add_bundles()->mutable_resources(), amounts);
    return request;
  }
  static GroupId id_of(const proto::RegisterGroupRequest& request) {
    return GroupId::from_binary(request.spec().group_id());
  }
  Answer<proto::Empty> add_group(const proto::RegisterGroupRequest& request, ConnId conn = kOwner) {
    Answer<proto::Empty> answer;
    core->register_group(conn, request, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  }
  Answer<proto::Empty> remove_group(const GroupId& id, ConnId conn = kOwner) {
    Answer<proto::Empty> answer;
    proto::GroupRequest request;
    request.set_group_id(id.binary());
    core->remove_group(conn, request, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  }
  void answer_prepare(const RecordingSink::Prepare& prepare,
                      const Result<proto::PrepareBundlesReply>& reply) {
    core->prepare_bundles_answered(prepare.node.node,
                                   GroupId::from_binary(prepare.request.group_id()),
                                   prepare.request.epoch(), reply, now);
    core->check_invariants(now);
  }
  void reserved(const RecordingSink::Prepare& prepare) {
    proto::PrepareBundlesReply reply;
    reply.set_ok(true);
    answer_prepare(prepare, reply);
    commit();
  }
  void refused(const RecordingSink::Prepare& prepare, const std::string& why = "it is full") {
    proto::PrepareBundlesReply reply;
    reply.set_why_not(why);
    answer_prepare(prepare, reply);
    commit();
  }
  // Answers everything that nodes were asked to reserve.
  void reserve_all() {
    while (!sink.prepares.empty()) reserved(take(sink.prepares));
  }
  GroupId created_group(const proto::RegisterGroupRequest& request) {
    EXPECT_TRUE(add_group(request).ok());
    reserve_all();
    EXPECT_EQ(group_state(id_of(request)), proto::GROUP_CREATED);
    drop_pushes();
    return id_of(request);
  }

  const Group& group(const GroupId& id) { return *core->view().groups().find(id); }
  proto::GroupState group_state(const GroupId& id) { return group(id).info.state(); }
  std::string why(const GroupId& id) { return shown(id).why(); }
  proto::GroupInfo shown(const GroupId& id) {
    proto::GetGroupRequest request;
    request.set_group_id(id.binary());
    return core->view().get_group(request)->group();
  }
  // Returns the number of the node that holds the bundle; 0: none does.
  int node_of(const GroupId& id, int bundle) {
    const NodeId node = group(id).node_of(bundle);
    return node.is_nil() ? 0 : node.data()[0];
  }
  // Takes the news of groups that were pushed to a connection, and returns them.
  std::vector<proto::GroupInfo> news(ConnId conn = kOwner) {
    std::vector<proto::GroupInfo> out;
    std::erase_if(sink.pushes, [&](const RecordingSink::Push& push) {
      if (push.conn != conn || push.event.groups_size() == 0) return false;
      out.insert(out.end(), push.event.groups().begin(), push.event.groups().end());
      return true;
    });
    return out;
  }
  std::vector<proto::GroupState> news_states(ConnId conn = kOwner) {
    std::vector<proto::GroupState> states;
    for (const proto::GroupInfo& info : news(conn)) states.push_back(info.state());
    return states;
  }
  // Returns the texts of the notices that were pushed.
  std::vector<std::string> notices() {
    std::vector<std::string> texts;
    for (const auto& push : sink.pushes) {
      for (const auto& notice : push.event.notices()) texts.push_back(notice.text());
    }
    return texts;
  }
  void drop_pushes() { sink.pushes.clear(); }
  bool on_disk(const GroupId& id) { return disk.tables["groups"].contains(id.binary()); }
  proto::GroupInfo recorded(const GroupId& id) {
    proto::GroupInfo info;
    EXPECT_TRUE(info.ParseFromString(disk.tables["groups"][id.binary()]));
    return info;
  }
  // Returns the registration of a node that holds all bundles which the core believes to be there.
  proto::RegisterNodeRequest holding(int n) {
    auto request = registration(n, reported[n]);
    for (const auto& [id, group] : core->view().groups().all()) {
      for (int i = 0; i < static_cast<int>(group.bundles.size()); ++i) {
        if (group.node_of(i) == node_id(n)) hold(request, id, i, group.info.bundle_epochs(i));
      }
    }
    return request;
  }
  static void hold(proto::RegisterNodeRequest& request, const GroupId& id, int index,
                   int64_t epoch) {
    proto::HeldBundle& bundle = *request.add_bundles();
    bundle.set_group_id(id.binary());
    bundle.set_index(index);
    bundle.set_epoch(epoch);
  }

  Rng rng{7};
};

}  // namespace rt::head
