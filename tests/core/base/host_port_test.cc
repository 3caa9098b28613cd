#include "core/base/host_port.h"

#include <gtest/gtest.h>

namespace attendant {
namespace {

TEST(HostPortTest, TakesApart) {
  EXPECT_EQ(HostOf("a.b:1"), "a.b");
  EXPECT_EQ(HostOf("[::1]:7600"), "[::1]");
  EXPECT_EQ(BareHostOf("[::1]:7600"), "::1");
  EXPECT_EQ(BareHostOf("a:1"), "a");
  EXPECT_EQ(PortOf("[::1]:7600"), 7600);
  EXPECT_EQ(PortOf("a:65535"), 65535);
  for (const char* none : {"", "a", "a:", "a:x", "a:65536", "a:-1"}) {
    EXPECT_EQ(PortOf(none), 0) << none;
  }
}

TEST(HostPortTest, PutsTogether) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 7600), "127.0.0.1:7600");
  EXPECT_EQ(WithPort("[::1]:1", 2), "[::1]:2");
}

}  // namespace
}  // namespace attendant
