// Precompiled: what unit tests use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "cmake/pch/proto.h"
