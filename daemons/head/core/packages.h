// Packages of runtime environments that were uploaded for submitted jobs rather than by a driver,
// so that no job's end removes them. An upload that would take the size of all packages beyond
// packages_max_bytes removes packages without a user, oldest upload first.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemons/head/core/kv.h"

namespace rt::head {

class Packages {
 public:
  // The namespace of the key-value store. A package has the keys NAME, NAME#0, NAME#1, ...
  static constexpr char kNamespace[] = "pkg";

  Packages(Kv& kv, const Settings& settings) : kv_(kv), settings_(settings) {}
  // Call before a piece of a package is stored. Removes idle packages if that is needed for the
  // piece. `in_use` says whether something that runs or is to run names a package. Fails with
  // kResourceExhausted when removing all idle packages is not enough.
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
  // When this head received each package's last piece (steady clock).
  std::map<std::string, int64_t> uploaded_us_;
};

}  // namespace rt::head
