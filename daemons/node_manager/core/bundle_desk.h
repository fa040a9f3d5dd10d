// Reserves bundles of placement groups for the head, and gives them back. NodeCore says when.
#pragma once

#include <span>
#include <string>

#include "common/base/clock.h"
#include "common/config/settings.h"
#include "daemons/node_manager/core/bundle_line.h"
#include "daemons/node_manager/core/bundles.h"
#include "daemons/node_manager/core/hosted_actors.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/node_sink.h"
#include "daemons/node_manager/core/reservation.h"
#include "daemons/node_manager/core/workers.h"

namespace rt::node {

class BundleDesk {
 public:
  // All of them outlive the desk.
  struct Parts {
    NodeSink& sink;
    const Settings& settings;
    const NodeIdentity& me;
    Rooms& rooms;
    BundleLine& line;
    Workers& workers;
    HostedActors& actors;
  };
  explicit BundleDesk(const Parts& node) : node_(node) {}

  // These return true if others may be served now. A node that is `leaving` reserves nothing.
  bool prepare(const proto::PrepareBundlesRequest& request, bool leaving, Now now);
  bool give_back(const proto::ReturnBundlesRequest& request, Now now);
  // Reserves what waits and fits now, and refuses what has waited in vain.
  void serve_line(Now now);
  // Drops what waits, so that the same attempts may be asked for again.
  void drop_waiting();
  // Refuses everything that waits.
  void close(const std::string& why);
  // A process that was in the room has been reaped.
  void vacated(const RoomKey& room);

 private:
  // The amounts of the node's room that are free or may become free for bundles soon.
  struct Outlook {
    // All that comes back by itself (rule 1 of reservation.h), with bundles that are being given
    // back.
    Prospect soon;
    Prospect with_blocked;  // the same with what blocked tasks hold
  };

  // Returns why the request cannot be understood, or an empty text.
  std::string fault_of(const proto::PrepareBundlesRequest& request) const;
  // Returns why the attempt comes too late, or an empty text.
  std::string overtaken(const proto::PrepareBundlesRequest& request) const;
  bool holds_all(const proto::PrepareBundlesRequest& request) const;
  BundleAttempt attempt_of(const proto::PrepareBundlesRequest& request, Now now) const;
  // Ends earlier attempts of the group, as far as this one is in their place.
  void replace_earlier(const proto::PrepareBundlesRequest& request, Now now);
  void answer(const GroupId& group, int64_t epoch, const std::string& why_not);
  // Remembers the answer, too. A waiting attempt leaves the line.
  void refuse(const GroupId& group, int64_t epoch, const std::string& why);
  bool fits(const BundleAttempt& attempt) const;
  // Returns why it does not help to wait any longer, or an empty text.
  std::string hopeless(const BundleAttempt& attempt, const Outlook& outlook) const;
  void hold(const BundleAttempt& attempt);
  Outlook look_ahead() const;
  void begin_return(const RoomKey& key, const proto::ExitInfo& why, Now now);

  const Parts node_;
};

}  // namespace rt::node
