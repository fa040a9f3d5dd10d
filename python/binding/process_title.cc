#include "python/binding/process_title.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "common/base/utf8.h"

namespace rt::python {

ProcessTitle::ProcessTitle() {
  FILE* file = fopen("/proc/self/stat", "re");
  if (!file) return;
  char text[4096];
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = 0;
  // Fields are counted from 1. The second is a name in parentheses, which may hold blanks; 48 and
  // 49 are arg_start and arg_end.
  const char* at = strrchr(text, ')');
  for (int field = 2; at && field < 48; ++field) at = strchr(at + 1, ' ');
  unsigned long begin = 0, end = 0;
  if (!at || sscanf(at, " %lu %lu", &begin, &end) != 2 || begin == 0 || end <= begin + 1) return;
  begin_ = reinterpret_cast<char*>(begin);
  room_ = used_ = end - begin - 1;
  begin_[room_] = 0;
}

void ProcessTitle::set(std::string_view title) {
  if (!begin_) return;
  size_t size = std::min(title.size(), room_);
  memcpy(begin_, title.data(), size);
  if (size < used_) memset(begin_ + size, 0, used_ - size);
  used_ = size;
}

void name_thread(std::string_view name) {
  constexpr size_t kMostBytes = 15;
  size_t cut_character = 0;
  std::string text = valid_utf8(name.substr(0, kMostBytes), &cut_character);
  pthread_setname_np(pthread_self(), text.c_str());
}

}  // namespace rt::python
