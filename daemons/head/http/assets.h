// The files of the web page, part of the program.
#pragma once

#include <span>
#include <string_view>

namespace rt::head {

struct Asset {
  std::string_view name, type, content;
};
// Of dashboard/, made by cmake/assets.cmake.
std::span<const Asset> assets();

}  // namespace rt::head
