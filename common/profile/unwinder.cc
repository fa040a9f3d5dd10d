#include "common/profile/unwinder.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <filesystem>

namespace rt::profile {
namespace {

constexpr const char* kModule = "libray_unwind.so";
constexpr size_t kMaxFrames = 512;

// The program or library that contains this code; libraries are at known places from there: build tree, installed, wheel.
std::filesystem::path own_directory() {
  Dl_info info{};
  std::filesystem::path own;
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) != 0 && info.dli_fname) own = info.dli_fname;
  std::error_code ignored;
  if (!own.is_absolute()) own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (auto real = std::filesystem::canonical(own, ignored); !ignored) own = real;
  return own.parent_path();
}

Result<const ray_unwind_api*> load() {
  std::filesystem::path own = own_directory();
  std::string reason;
  for (const char* near : {"../lib", "lib", "../../lib", "../../..", "."}) {
    std::filesystem::path path = own / near / kModule;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      reason = dlerror();
      continue;
    }
    auto entry = reinterpret_cast<decltype(&ray_unwind)>(dlsym(handle, "ray_unwind"));
    const ray_unwind_api* api = entry ? entry() : nullptr;
    if (api && api->version == RAY_UNWIND_VERSION) return api;
    reason = path.string() + " is of another release";
  }
  if (reason.empty()) reason = fmt::format("{} is not near {}", kModule, own.string());
  return make_error(Code::kUnsupported, fmt::format("no native frames: {} (it comes with this software and needs elfutils' libdw: apt install libdw1)", reason));
}

}  // namespace

Result<std::unique_ptr<Unwinder>> Unwinder::open() {
  static const Result<const ray_unwind_api*> api = load();
  if (!api) return api.error();
  char error[256] = "";
  void* self = (*api)->open(error, sizeof(error));
  if (!self) return make_error(Code::kUnsupported, fmt::format("no native frames: elfutils cannot read this process ({})", error));
  return std::unique_ptr<Unwinder>(new Unwinder(**api, self));
}

Unwinder::~Unwinder() { api_.close(self_); }

void Unwinder::unwind(const Capture& capture, std::vector<uint64_t>* pcs) {
  pcs->resize(kMaxFrames);
  ray_unwind_input input{capture.registers, kRegisters, capture.only_sp_and_pc, capture.sp, capture.pc, reinterpret_cast<const unsigned char*>(capture.stack), capture.stack_bytes};
  pcs->resize(api_.unwind(self_, &input, pcs->data(), pcs->size()));
}

NativeName Unwinder::name(uint64_t pc) {
  ray_unwind_symbol found{};
  api_.symbol(self_, pc, &found);
  NativeName name;
  name.function = found.function ? found.function : fmt::format("{:#x}", pc);
  if (found.module) name.module = std::filesystem::path(found.module).filename();
  if (found.file) name.file = found.file;
  name.line = found.line;
  return name;
}

}  // namespace rt::profile
