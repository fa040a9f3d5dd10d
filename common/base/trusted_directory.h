// Directories whose files another user of the machine must not be able to replace.
#pragma once

#include <string>

#include "common/base/status.h"

namespace rt {

// Names a directory in errors: "cannot use DIR for <purpose>: ...; <elsewhere>".
struct DirectoryUse {
  const char* purpose;    // For example "the session's files".
  const char* elsewhere;  // For example "choose another place with --temp-dir or RAY_TMPDIR".
  unsigned mode = 0700;   // The mode of a directory that is made.
};

// Whether `uid` is this user or root.
bool trusted_owner(unsigned uid);

// Makes a directory, or checks the one that is there: the owner of a directory, and of a link that
// leads to it, can replace what is in it, so both must be trusted. Where all users can write, they
// must not be able to remove the files of others, so that such a directory gets the sticky bit.
// kIo or kOutOfDisk says what is wrong and what to do.
Status claim_directory(const std::string& path, const DirectoryUse& use);

// Checks a file before it is opened in such a directory, where another user may have put it first:
// kIo when it, or what it links to, belongs to another user. No file is fine.
Status check_file_owner(const std::string& path, const DirectoryUse& use);

// The error of a directory in which a system call failed.
Error cannot_use(const std::string& path, const DirectoryUse& use, int errnum);

}  // namespace rt
