// Precompiled header for unit tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "cmake/pch/common.h"
