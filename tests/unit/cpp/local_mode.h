// A fixture that runs each test in local mode, in the namespace "tests".
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
