// TempDir of loop_driver.h.
#include <cstdlib>
#include <filesystem>

#include "tests/unit/common/loop_driver.h"

namespace rt::test {

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rt_test_XXXXXX").string();
  RT_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rt::test
