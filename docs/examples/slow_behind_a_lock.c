/* Operators run in a native thread of their own. One of them queries properties of the system behind
   a file lock, which one process of the machine can hold at a time, for a moment each. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long wanted = 0, finished = 0;
static int lock_file = -1;

__attribute__((noinline)) static void query_device_properties(void) {
  while (flock(lock_file, LOCK_EX) != 0) {
  }
  poll(NULL, 0, 20);
  flock(lock_file, LOCK_UN);
}

__attribute__((noinline)) static void topk_operator(void) {
  query_device_properties();
  __asm__ volatile("");      /* Keeps the call from being a tail call without a frame. */
}

static void* operators(void* unused) {
  pthread_mutex_lock(&mutex);
  for (;;) {
    while (finished == wanted) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    topk_operator();
    pthread_mutex_lock(&mutex);
    ++finished;
    pthread_cond_broadcast(&changed);
  }
  return unused;
}

void start(const char* path) {
  pthread_t thread;
  lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file < 0 || pthread_create(&thread, NULL, operators, NULL) != 0) abort();
  pthread_setname_np(thread, "operators");
}

/* Queues one operator and waits for it, as a program does that needs the value now. */
void step(void) {
  pthread_mutex_lock(&mutex);
  long mine = ++wanted;
  pthread_cond_broadcast(&changed);
  while (finished < mine) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}
