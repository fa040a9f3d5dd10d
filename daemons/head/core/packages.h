// Packages of runtime environments that no driver put, but whoever submits jobs: nobody's end takes
// them along. Together they take packages_max_bytes at most; those uploaded longest ago that
// nothing names any more make room for new ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemons/head/core/kv.h"

namespace rt::head {

class Packages {
 public:
  static constexpr char kNamespace[] =
      "pkg";  // of the key-value store; a package is NAME, and NAME#0, NAME#1, ...

  Packages(Kv& kv, const Settings& settings) : kv_(kv), settings_(settings) {}
  // Before a piece is stored. `in_use`: whether something that runs, or is to, names this package.
  // kResourceExhausted: even without the others there is no room.
  Status make_room(const proto::KvPutRequest& request,
                   const std::function<bool(const std::string& name)>& in_use, Now now);

 private:
  struct Package {
    int64_t bytes = 0;
    int64_t uploaded_us = 0;
    bool of_jobs = false;
  };
  std::map<std::string, Package> all() const;
  void drop(const std::string& name);

  Kv& kv_;
  const Settings& settings_;
  std::map<std::string, int64_t> uploaded_us_;  // by this head, the last piece
};

}  // namespace rt::head
