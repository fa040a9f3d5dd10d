// What libray_api.so shows, and classes that must be one and the same in every library of a
// process.
#pragma once

#define RAY_API __attribute__((visibility("default")))
