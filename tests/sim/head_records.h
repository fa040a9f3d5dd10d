// The part of a head that serves key-value data, packages, submitted jobs, lines of logs and
// samples of metrics. Each answer is checked against the disk and what is on its way there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemons/head/core/head_core.h"
#include "tests/sim/head_samples.h"
#include "tests/sim/world.h"

namespace rt::sim {

class HeadRecords {
 public:
  template <class T>
  using Answer = Channel::Answer<T>;
  using Event = std::function<void(head::HeadCore&, Now)>;
  struct Environment {
    // Passes an event to the core.
    std::function<void(const Event&)> drive;
    const head::HeadCore& core;
    // A table of the disk, with what is on its way there or was refused without the core's
    // knowledge: this is what the core has to show.
    std::function<head::Records(const char* table)> shown;
    const head::Tables& disk;
    // Null if the connection is closed.
    std::function<Channel*(head::ConnId)> channel;
  };
  HeadRecords(World& world, Environment environment)
      : world_(world), environment_(std::move(environment)), samples_(world) {}

  // ---- requests that arrive over connections
  void kv_put(const proto::KvPutRequest& request, const Answer<proto::KvPutReply>& answer);
  void kv_get(const proto::KvGetRequest& request, const Answer<proto::KvGetReply>& answer);
  void kv_delete(const proto::KvGetRequest& request, const Answer<proto::KvPutReply>& answer);
  void kv_list(const proto::KvListRequest& request, const Answer<proto::KvListReply>& answer);
  void submit_job(const proto::SubmitJobRequest& request,
                  const Answer<proto::SubmitJobReply>& answer);
  void get_job(const std::string& id, const Answer<proto::SubmittedJob>& answer);
  void stop_job(const std::string& id, const Answer<proto::StopJobReply>& answer);
  void delete_job(const std::string& id, const Answer<proto::Empty>& answer);
  void report_job(Channel& from, const proto::SubmittedJob& report,
                  const Answer<proto::Empty>& answer);
  void publish(Channel& from, const proto::HeadEvent& lines);
  void sample(const proto::NodeSample& sample);
  void sample_cluster() { samples_.add_cluster(); }

  // ---- decisions of the core
  void start_job(const head::NodeLink& node, const proto::StartJobProcessRequest& request);
  void stop_job(const head::NodeLink& node, const std::string& id);
  void remove_job_log(const head::NodeLink& node, const std::string& id);
  void pushed(head::ConnId conn, const proto::HeadEvent& event);

  // ---- what the rest of the head does
  void subscribed(head::ConnId conn, const proto::SubscribeRequest& request);
  void closed(head::ConnId conn) { followers_.erase(conn); }
  // A batch with key-value data has reached the disk.
  void check_disk() const;

 private:
  struct Follower {
    std::set<std::string> jobs;
    bool errors = false;
  };
  // The lines that were sent to each connection.
  using Lines = std::map<head::ConnId, std::string>;
  static bool is_whole(const head::Records& values, const std::string& package);
  void check_packages(const proto::KvPutRequest& request, bool accepted,
                      const head::Records& before);

  World& world_;
  const Environment environment_;
  HeadSamples samples_;
  std::map<head::ConnId, Follower> followers_;
  std::optional<Lines> published_;  // while lines are being published
  // When this head took the last piece of each package.
  std::map<std::string, int64_t> uploaded_us_;
};

}  // namespace rt::sim
