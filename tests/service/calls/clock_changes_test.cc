// A server whose machine's wall clock is set forward and back.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/clock.h"
#include "service/calls/call.h"
#include "service/calls/call_count.h"
#include "tests/service/server_fixture.h"
#include "tests/support/wall_clock.h"

namespace attendant {
namespace {

constexpr absl::Duration kYear = absl::Hours(365 * 24);

TEST(CallCountTest, TheGraceIsAsLongAsWasAsked) {
  CallCount calls;
  calls.Begin();
  const ShiftedWallClock back(-kYear);
  EXPECT_FALSE(calls.AwaitNone(SteadyAfter(absl::Milliseconds(1))));
  calls.End();
  EXPECT_TRUE(calls.AwaitNone(SteadyTime::min()));
}

TEST(GrpcTimeTest, IsAsFarAsTheSteadyTime) {
  const gpr_timespec never = ToGrpcTime(SteadyTime::max());
  EXPECT_EQ(gpr_time_cmp(never, gpr_inf_future(never.clock_type)), 0);
  const ShiftedWallClock back(-kYear);
  const gpr_timespec later = ToGrpcTime(SteadyAfter(absl::Hours(1)));
  const gpr_timespec left = gpr_time_sub(later, gpr_now(later.clock_type));
  EXPECT_LE(left.tv_sec, 3600);
  EXPECT_GT(left.tv_sec, 1800);
}

class ClockChangesTest : public ServerFixture {
 protected:
  // Replaces the name of item a, and reads it with that write's token.
  void Rename(const std::string& name) {
    v1::BatchUpsertItemsRequest write;
    write.set_catalog("shop");
    v1::Item* item = write.add_items();
    item->set_id("a");
    auto& key = *(*item->mutable_keys())["k"].mutable_floats();
    key.add_values(1);
    key.add_values(0);
    (*item->mutable_attributes())["name"].set_string_value(name);
    v1::BatchUpsertItemsResponse written;
    grpc::Status status = Upsert(write, &written);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ExpectName(name, written.state_token());
  }

  void ExpectName(const std::string& name, const std::string& token) {
    v1::BatchGetItemsRequest read;
    read.set_catalog("shop");
    read.set_state_token(token);
    read.add_ids("a");
    grpc::ClientContext context;
    context.set_deadline(ToGrpcTime(SteadyAfter(absl::Minutes(10))));
    v1::BatchGetItemsResponse items;
    const grpc::Status status =
        item_stub_->BatchGetItems(&context, read, &items);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(items.items_size(), 1);
    EXPECT_EQ(items.items(0).attributes().at("name").string_value(), name);
  }

  // Restarts the server on the same data.
  void Restart() {
    TearDown();
    SetUp();
  }
};

TEST_F(ClockChangesTest, NothingIsLostHoweverItIsSet) {
  CreateShop();
  {
    const ShiftedWallClock forward(10 * kYear);
    Rename("ten years on");
    Restart();
    ExpectName("ten years on", "");
  }
  {
    const ShiftedWallClock back(-10 * kYear);
    ExpectName("ten years on", "");
    Rename("ten years ago");
    Restart();
    ExpectName("ten years ago", "");
    Rename("still ten years ago");
  }
  Restart();
  ExpectName("still ten years ago", "");
}

}  // namespace
}  // namespace attendant
