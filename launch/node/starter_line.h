// The line between a starter (`rayctl start`) and the daemons it spawns, until the node's record
// names them: a FIFO in the session directory, whose writing end only the starter holds.
//
// A starter that ends early, however it ends, closes its end: the daemons read the end of file and
// end, too (daemon::EndWatch). release() puts a byte into the FIFO, which nobody takes out: a
// daemon that finds it goes on without the line. Until then every process of the start has the FIFO
// open, from the moment of its fork, so that holders() knows those that no record can name yet.
#pragma once

#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/status.h"
#include "launch/node/launch.h"

namespace rt::launch {

class StarterLine {
 public:
  // Makes the FIFO, in place of one that an interrupted start has left.
  static Result<StarterLine> create(const std::string& session_dir);
  // The end that daemons inherit.
  int reading_end() const { return reading_.get(); }
  // Lets the daemons go on without this process, and removes the FIFO.
  Status release();

  // The processes of an unfinished start in this session: daemons by their names, and the starter
  // as kStarter. Empty once the line was released.
  static std::vector<StartedProcess> holders(const std::string& session_dir);

 private:
  std::string path_;
  Fd reading_, writing_;
};

// The name that a starter has among the processes of a node.
inline constexpr const char* kStarter = "rayctl start";

}  // namespace rt::launch
