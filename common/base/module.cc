#include "common/base/module.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <filesystem>

namespace rt {
namespace {

// The directory of the program or library that contains this code. Modules are at known places from
// there.
std::filesystem::path own_directory() {
  Dl_info info{};
  std::filesystem::path own;
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) != 0 && info.dli_fname)
    own = info.dli_fname;
  std::error_code ignored;
  if (!own.is_absolute()) own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (auto real = std::filesystem::canonical(own, ignored); !ignored) own = real;
  return own.parent_path();
}

}  // namespace

Result<void*> load_module(const char* file, const char* entry) {
  std::filesystem::path own = own_directory();
  std::string reason;
  for (const char* near : {"../lib", "lib", "../../lib", "../../..", "."}) {
    std::filesystem::path path = own / near / file;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle ? dlsym(handle, entry) : nullptr;
    if (symbol) return symbol;
    reason = dlerror();
  }
  if (reason.empty()) reason = fmt::format("{} is not near {}", file, own.string());
  return make_error(Code::kUnsupported, reason);
}

}  // namespace rt
