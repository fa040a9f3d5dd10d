// The interface between observability/profile and libray_unwind.so, which is loaded with the first
// profile. It is in C, so that the two may come from different builds.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RAY_UNWIND_VERSION = 1 };

struct ray_unwind_input {
  const uint64_t* registers;  // Indexed by DWARF number.
  size_t register_count;
  int only_sp_and_pc;  // Set if the other registers are not known.
  uint64_t sp, pc;
  const unsigned char* stack;  // A copy of the memory from sp on.
  size_t stack_bytes;
};

// The strings are valid until the next call of symbol(), or until close().
struct ray_unwind_symbol {
  const char* function;  // NULL if there is no symbol
  const char* module;    // The path of the program or library; NULL if it is in none.
  const char* file;      // NULL without debug information
  int line;
};

// `self` is a handle from open(). Only one thread may use a handle at a time.
struct ray_unwind_api {
  int version;
  // Returns a handle for this process, or NULL with a message in `error`.
  void* (*open)(char* error, size_t error_size);
  void (*close)(void* self);
  // Stores the program counters, innermost first, and returns their number. The addresses of
  // callers lie inside their call instructions, so that they belong to the right line.
  size_t (*unwind)(void* self, const struct ray_unwind_input* input, uint64_t* pcs,
                   size_t capacity);
  void (*symbol)(void* self, uint64_t pc, struct ray_unwind_symbol* out);
};

__attribute__((visibility("default"))) const struct ray_unwind_api* ray_unwind(void);

#ifdef __cplusplus
}
#endif
