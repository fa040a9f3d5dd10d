// libray_unwind.so: unwinds copied stacks of the process it is loaded into, by elfutils' libdwfl.
#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "observability/profile/module/unwind_api.h"

namespace {

constexpr int64_t kRefreshAtMostEveryNs = 200'000'000;

// Finds debug information on this machine only. The standard search of libdwfl may download it from
// debuginfod servers. Its arguments are those of Dwfl_Callbacks::find_debuginfo.
template <class... Arguments>
int find_local_debuginfo(Arguments... arguments) {
  return dwfl_build_id_find_debuginfo(arguments...);
}

char* g_debuginfo_path = nullptr;
const Dwfl_Callbacks kCallbacks = {dwfl_linux_proc_find_elf, find_local_debuginfo,
                                   dwfl_offline_section_address, &g_debuginfo_path};

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

struct Unwinder {
  Dwfl* dwfl = nullptr;
  int64_t refreshed_ns = 0;
  const ray_unwind_input* input = nullptr;  // The arguments of the call of unwind() under way.
  uint64_t* pcs = nullptr;
  size_t capacity = 0, count = 0;
  std::string function;  // The last name that symbol() returned.
};

// Tells libdwfl which modules are mapped at present.

bool report(Unwinder& self) {
  self.refreshed_ns = now_ns();
  dwfl_report_begin(self.dwfl);
  int failed = dwfl_linux_proc_report(self.dwfl, getpid());
  return dwfl_report_end(self.dwfl, nullptr, nullptr) == 0 && failed == 0;
}

// Returns whether an address is in a known module. Looks for newly loaded libraries if it is not.
bool knows(Unwinder& self, uint64_t pc) {
  if (dwfl_addrmodule(self.dwfl, pc)) return true;
  if (now_ns() - self.refreshed_ns < kRefreshAtMostEveryNs) return false;
  return report(self) && dwfl_addrmodule(self.dwfl, pc);
}

pid_t no_next_thread(Dwfl*, void*, void**) { return 0; }

bool only_thread(Dwfl*, pid_t, void* dwfl_arg, void** thread_arg) {
  *thread_arg = dwfl_arg;
  return true;
}

bool read_stack(Dwfl*, Dwarf_Addr address, Dwarf_Word* out, void* arg) {
  const ray_unwind_input& input = *static_cast<Unwinder*>(arg)->input;
  if (address < input.sp || address - input.sp + sizeof(*out) > input.stack_bytes) return false;
  std::memcpy(out, input.stack + (address - input.sp), sizeof(*out));
  return true;
}

bool set_registers(Dwfl_Thread* thread, void* arg) {
  const ray_unwind_input& input = *static_cast<Unwinder*>(arg)->input;
#if defined(__x86_64__)
  constexpr int kSp = 7, kPc = 16, kGeneral = 17;
#else
  constexpr int kSp = 31, kGeneral = 32;
#endif
  dwfl_thread_state_register_pc(thread, input.pc);
  if (!input.only_sp_and_pc)
    return dwfl_thread_state_registers(thread, 0, kGeneral, input.registers);
#if defined(__x86_64__)
  if (!dwfl_thread_state_registers(thread, kPc, 1, &input.pc)) return false;
#endif
  return dwfl_thread_state_registers(thread, kSp, 1, &input.sp);
}

const Dwfl_Thread_Callbacks kThreadCallbacks = {no_next_thread, only_thread, read_stack,
                                                set_registers,  nullptr,     nullptr};

int on_frame(Dwfl_Frame* frame, void* arg) {
  auto& self = *static_cast<Unwinder*>(arg);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (self.count == self.capacity || !dwfl_frame_pc(frame, &pc, &is_activation) || pc == 0)
    return DWARF_CB_ABORT;
  if (self.count > 0 && !is_activation) --pc;
  self.pcs[self.count++] = pc;
  return DWARF_CB_OK;
}

void* open_self(char* error, size_t error_size) {
  auto* self = new Unwinder;
  self->dwfl = dwfl_begin(&kCallbacks);
  if (self->dwfl && report(*self) &&
      dwfl_attach_state(self->dwfl, nullptr, getpid(), &kThreadCallbacks, self))
    return self;
  std::snprintf(error, error_size, "%s", dwfl_errmsg(-1));
  if (self->dwfl) dwfl_end(self->dwfl);
  delete self;
  return nullptr;
}

void close_self(void* handle) {
  auto* self = static_cast<Unwinder*>(handle);
  dwfl_end(self->dwfl);
  delete self;
}

size_t unwind(void* handle, const ray_unwind_input* input, uint64_t* pcs, size_t capacity) {
  auto& self = *static_cast<Unwinder*>(handle);
  self.input = input;
  self.pcs = pcs;
  self.capacity = capacity;
  self.count = 0;
  if (!knows(self, input->pc) && capacity > 0) {
    // Generated code has no unwind information to find its caller.
    pcs[0] = input->pc;
    return 1;
  }
  dwfl_getthread_frames(self.dwfl, getpid(), on_frame, &self);
  if (self.count == 0 && capacity > 0) pcs[self.count++] = input->pc;
  return self.count;
}

void symbol(void* handle, uint64_t pc, ray_unwind_symbol* out) {
  auto& self = *static_cast<Unwinder*>(handle);
  *out = {};
  Dwfl_Module* module = knows(self, pc) ? dwfl_addrmodule(self.dwfl, pc) : nullptr;
  if (!module) return;
  const char* path = nullptr;
  out->module =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
  if (path) out->module = path;
  if (const char* name = dwfl_module_addrname(module, pc)) {
    int status = 0;
    char* demangled = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    self.function = status == 0 && demangled ? demangled : name;
    std::free(demangled);
    out->function = self.function.c_str();
  }
  if (Dwfl_Line* line = dwfl_module_getsrc(module, pc))
    out->file = dwfl_lineinfo(line, nullptr, &out->line, nullptr, nullptr, nullptr);
}

const ray_unwind_api kApi = {RAY_UNWIND_VERSION, open_self, close_self, unwind, symbol};

}  // namespace

const ray_unwind_api* ray_unwind() { return &kApi; }
