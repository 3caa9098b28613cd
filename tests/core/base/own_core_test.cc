#include "core/base/own_core.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace attendant {
namespace {

cpu_set_t Cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  return cores;
}

TEST(OwnCoreTest, AsManyThreadsAsCoresHaveOneEach) {
  cpu_set_t all = Cores();
  const int count = CPU_COUNT(&all);
  cpu_set_t taken;
  CPU_ZERO(&taken);
  for (int i = 0; i < count; ++i) {
    std::thread([&] {
      OwnCore core(i, count);
      core.Stay();
      core.Stay();
      cpu_set_t own = Cores();
      EXPECT_EQ(CPU_COUNT(&own), 1);
      CPU_OR(&taken, &taken, &own);
      core.Leave();
      own = Cores();
      EXPECT_TRUE(CPU_EQUAL(&own, &all));
    }).join();
  }
  EXPECT_TRUE(CPU_EQUAL(&taken, &all));
}

TEST(OwnCoreTest, FewerOrMoreGoWhereTheyMay) {
  cpu_set_t all = Cores();
  for (const int count : {CPU_COUNT(&all) - 1, CPU_COUNT(&all) + 1}) {
    std::thread([&] {
      OwnCore core(0, count);
      core.Stay();
      cpu_set_t own = Cores();
      EXPECT_TRUE(CPU_EQUAL(&own, &all));
    }).join();
  }
}

}  // namespace
}  // namespace attendant
