// Precompiled: what unit tests use.
#include "cmake/pch/proto.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
