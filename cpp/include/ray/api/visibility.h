// Marks the symbols that libray_api.so exports, and classes that must be the same in every library
// of a process.
#pragma once

#define RAY_API __attribute__((visibility("default")))
