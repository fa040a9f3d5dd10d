#include "code_loader.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "common/base/log.h"
#include "ray/api/registry.h"

namespace ray::internal {
namespace {

namespace fs = std::filesystem;

// Matches libx.so and libx.so.1, but not libray_api.so: a second copy would have another registry.
bool is_user_library(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.starts_with("libray_api.so")) return false;
  size_t so = name.find(".so");
  return so != std::string::npos && (so + 3 == name.size() || name[so + 3] == '.');
}

}  // namespace

void CodeLoader::load_library(const std::string& path) {
  Registry::Instance().BeginLoading();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = library ? nullptr : dlerror();
  std::vector<std::string> complaints = Registry::Instance().EndLoading();
  if (error) complaints.push_back(fmt::format("{} cannot be loaded: {}", path, error));
  if (library) loaded_.insert(path);
  for (const std::string& complaint : complaints) {
    RT_WARN("{}", complaint);
    problems_.push_back(complaint);
  }
}

void CodeLoader::load(const std::vector<std::string>& search_path) {
  rt::MutexLock lock(mutex_);
  for (const std::string& place : search_path) {
    if (!searched_.insert(place).second) continue;
    std::error_code error;
    std::vector<std::string> libraries;
    if (fs::is_directory(place, error)) {
      for (const auto& entry : fs::directory_iterator(place, error)) {
        std::error_code ignored;
        if (is_user_library(entry.path()) && entry.is_regular_file(ignored))
          libraries.push_back(entry.path().string());
      }
    } else if (fs::exists(place, error)) {
      libraries.push_back(place);
    }
    if (error) problems_.push_back(fmt::format("{}: {}", place, error.message()));
    if (!error && !fs::exists(place)) problems_.push_back(place + " does not exist on this node");
    std::sort(libraries.begin(), libraries.end());
    for (const std::string& library : libraries) {
      if (!loaded_.contains(library)) load_library(library);
    }
  }
}

std::string CodeLoader::describe() const {
  rt::MutexLock lock(mutex_);
  std::string text =
      fmt::format("Code search path: {}. Libraries loaded: {}.",
                  searched_.empty() ? "(empty)" : fmt::format("{}", fmt::join(searched_, ":")),
                  loaded_.empty() ? "none" : fmt::format("{}", fmt::join(loaded_, ", ")));
  if (!problems_.empty()) text += fmt::format(" Problems: {}.", fmt::join(problems_, "; "));
  return text;
}

}  // namespace ray::internal
