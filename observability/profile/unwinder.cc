#include "observability/profile/unwinder.h"

#include <fmt/core.h>

#include <filesystem>

#include "common/base/module.h"

namespace rt::profile {
namespace {

constexpr const char* kModule = "libray_unwind.so";
constexpr size_t kMaxFrames = 512;

Result<const ray_unwind_api*> load() {
  Result<void*> entry = load_module(kModule, "ray_unwind");
  std::string reason = entry ? std::string() : entry.error().message;
  if (entry) {
    const ray_unwind_api* api = reinterpret_cast<decltype(&ray_unwind)>(*entry)();
    if (api && api->version == RAY_UNWIND_VERSION) return api;
    reason = fmt::format("{} belongs to another release", kModule);
  }
  return make_error(Code::kUnsupported,
                    fmt::format("no native frames: {} (it comes with this software and needs "
                                "elfutils' libdw: apt install libdw1)",
                                reason));
}

}  // namespace

Result<std::unique_ptr<Unwinder>> Unwinder::open() {
  static const Result<const ray_unwind_api*> api = load();
  if (!api) return api.error();
  char error[256] = "";
  void* self = (*api)->open(error, sizeof(error));
  if (!self)
    return make_error(
        Code::kUnsupported,
        fmt::format("no native frames: elfutils cannot read this process ({})", error));
  return std::unique_ptr<Unwinder>(new Unwinder(**api, self));
}

Unwinder::~Unwinder() { api_.close(self_); }

void Unwinder::unwind(const Capture& capture, std::vector<uint64_t>* pcs) {
  pcs->resize(kMaxFrames);
  ray_unwind_input input{
      capture.registers,  kRegisters, capture.only_sp_and_pc,
      capture.sp,         capture.pc, reinterpret_cast<const unsigned char*>(capture.stack),
      capture.stack_bytes};
  pcs->resize(api_.unwind(self_, &input, pcs->data(), pcs->size()));
}

NativeName Unwinder::name(uint64_t pc) {
  ray_unwind_symbol found{};
  api_.symbol(self_, pc, &found);
  NativeName name;
  if (found.module) name.module = std::filesystem::path(found.module).filename();
  name.known = found.function != nullptr;
  name.function = name.known ? found.function
                             : fmt::format("[{}]", found.module ? name.module : "generated code");
  if (found.file) name.file = found.file;
  name.line = found.line;
  return name;
}

}  // namespace rt::profile
