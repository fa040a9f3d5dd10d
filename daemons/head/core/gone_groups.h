// The ids of placement groups that were removed or refused. A creator that has not heard of it
// registers such a group again, which then must fail.
//
// All that is in memory may be forgotten with the head, except for removals by a process other than
// the group's creator: the creator would bring the group back to a head that was started again.
// They have a record on disk, which names the group and its state only.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>

#include "common/base/ids.h"
#include "common/base/recent_set.h"
#include "common/base/status.h"
#include "daemons/head/core/journal.h"

namespace rt::head {

class GoneGroups {
 public:
  // Remembers the last `most` ids. `journal` must outlive it.
  GoneGroups(Journal& journal, size_t most);
  ~GoneGroups();

  // Returns false if the group is remembered already.
  bool add(const GroupId& id) { return ids_.add(id); }
  bool contains(const GroupId& id) const { return ids_.contains(id); }
  // Adds a group that was refused. A repeated registration hears the same reason.
  void refuse(const GroupId& id, const Error& why);
  // Returns the reason for which the group was refused, or nullptr.
  const Error* refusal(const GroupId& id) const;

  // Makes the removal survive the head. Beyond the limit the oldest such records are erased.
  void keep(const GroupId& id);
  bool kept(const GroupId& id) const { return kept_.contains(id); }
  // Replaces the record of the group on disk by the record of its removal, if the removal is kept,
  // and erases the record if not.
  void write(const GroupId& id);
  // Adds the record of a removal that was found on disk.
  void recover(const GroupId& id);
  std::optional<std::string> record(const GroupId& id) const;

 private:
  Journal& journal_;
  const size_t most_;
  RecentSet<GroupId> ids_;
  std::map<GroupId, Error> refused_;
  std::deque<GroupId> refused_order_;  // The oldest comes first.
  std::unordered_set<GroupId> kept_;
  std::deque<GroupId> kept_order_;  // The oldest comes first.
};

}  // namespace rt::head
