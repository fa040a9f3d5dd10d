/* A native call that takes its time. */
#include <poll.h>
#include <stddef.h>

/* Keeps the GIL when called through ctypes.PyDLL. */
void hold(volatile int* end) {
  while (!*end) poll(NULL, 0, 50);
}
