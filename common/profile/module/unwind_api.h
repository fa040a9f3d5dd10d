// Between common/profile and libray_unwind.so, which is loaded at the first profile: C, so that the
// two may be of different builds.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RAY_UNWIND_VERSION = 1 };

struct ray_unwind_input {
  const uint64_t* registers;  // by DWARF number
  size_t register_count;
  int only_sp_and_pc;  // the others are not known
  uint64_t sp, pc;
  const unsigned char* stack;  // what was at sp
  size_t stack_bytes;
};

struct ray_unwind_symbol {
  const char* function;  // valid until the next call; NULL: unknown
  const char* module;    // path; NULL: none
  const char* file;      // NULL: no debug information
  int line;
};

// One user of a `self` at a time.
struct ray_unwind_api {
  int version;
  void* (*open)(char* error,
                size_t error_size);  // this process as it is now; NULL: `error` says why
  void (*close)(void* self);
  // Innermost first; of callers an address inside of the call. Returns how many.
  size_t (*unwind)(void* self, const struct ray_unwind_input* input, uint64_t* pcs,
                   size_t capacity);
  void (*symbol)(void* self, uint64_t pc, struct ray_unwind_symbol* out);
};

__attribute__((visibility("default"))) const struct ray_unwind_api* ray_unwind(void);

#ifdef __cplusplus
}
#endif
