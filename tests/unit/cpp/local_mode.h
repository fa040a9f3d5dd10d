// A test with local mode running.
#pragma once

#include <gtest/gtest.h>
#include <ray/api.h>

class LocalMode : public testing::Test {
 protected:
  void SetUp() override {
    ray::RayConfig config;
    config.local_mode = true;
    config.ray_namespace = "tests";
    ray::Init(config);
  }
  void TearDown() override { ray::Shutdown(); }
};
