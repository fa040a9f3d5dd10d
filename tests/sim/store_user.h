// A process with a connection to an object store, which answers it.
#pragma once

#include <cstdint>

#include "tests/sim/network.h"

namespace rt::sim {

class StoreUser : public Process {
 public:
  using Process::Process;
  // The answer to the request with this number. `whole`: all values are here, and are held until
  // the process gives them back.
  virtual void on_arguments(uint64_t ticket, bool whole) = 0;
  virtual void on_room() = 0;
};

inline StoreUser& store_user_at(Channel& arrived) {
  return static_cast<StoreUser&>(*arrived.process());
}

}  // namespace rt::sim
