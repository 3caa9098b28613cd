#include "core/base/process_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"

namespace attendant {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

TEST(ProcessMemoryTest, ResidentGrowsWithWhatIsTouched) {
  constexpr std::int64_t kBytes = 64 * kMiB;
  const std::int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  const std::vector<char> touched(kBytes, 'x');
  const std::int64_t after = ResidentBytes();
  EXPECT_EQ(std::ranges::count(touched, 'x'), kBytes);
  EXPECT_GE(after - before, kBytes * 9 / 10);
}

TEST(ProcessMemoryTest, ThisMachineHasSome) {
  EXPECT_GT(MachineMemoryBytes(), 64 * kMiB);
}

class FakeSystem {
 public:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path at = root() + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  std::string root() const { return directory_.path(); }

 private:
  const ScratchDirectory directory_;
};

TEST(ProcessMemoryTest, WithoutGroupsItIsTheMachines) {
  FakeSystem system;
  EXPECT_EQ(MachineMemoryBytes(system.root()), 0);
  system.Write("/proc/meminfo", "MemTotal:  8192 kB\nMemFree:  100 kB\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 8 * kMiB);
}

TEST(ProcessMemoryTest, TheLeastOfAllGroupsAboveHolds) {
  FakeSystem system;
  system.Write("/proc/meminfo", "MemTotal:  8192 kB\n");
  system.Write("/proc/self/cgroup", "0::/pod/app\n");
  system.Write("/sys/fs/cgroup/pod/app/memory.max", "max\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 8 * kMiB);
  system.Write("/sys/fs/cgroup/pod/memory.max", "3145728\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 3 * kMiB);
  system.Write("/sys/fs/cgroup/pod/app/memory.max", "2097152\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 2 * kMiB);
  // Inside a container its own cgroup is the root.
  system.Write("/sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), kMiB);
}

TEST(ProcessMemoryTest, GroupsOfVersionOneHoldToo) {
  FakeSystem system;
  system.Write("/proc/meminfo", "MemTotal:  8192 kB\n");
  system.Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/app\n");
  system.Write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes", "4194304\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 4 * kMiB);
  // cgroup version 1 expresses "no limit" as a number beyond any memory.
  system.Write("/sys/fs/cgroup/memory/app/memory.limit_in_bytes",
               "9223372036854771712\n");
  EXPECT_EQ(MachineMemoryBytes(system.root()), 8 * kMiB);
}

}  // namespace
}  // namespace attendant
