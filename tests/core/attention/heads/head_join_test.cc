#include "core/attention/heads/head_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kHuge = 3e38f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Two heads with values of one component.
class HeadJoinTest : public ::testing::Test {
 protected:
  HeadJoinTest() {
    heads_.head_count = 2;
    heads_.query = heads_.key = {{2, 1, {1, 1}}, {}};
    input_.heads = &heads_;
    input_.queries = {nullptr, 1, 1};
    input_.keys = input_.values = {nullptr, 0, 1};
    input_.names.values = "history";
  }

  // Joins the head outputs of one query.
  absl::Status Join(float first, float second, bool is_empty = false) {
    outputs_.assign(2, -1);
    HeadJoin join(input_, 1);
    join.Start(1, outputs_.data());
    join.StartHead(0);
    join.Add(0, &first, is_empty);
    join.StartHead(1);
    join.Add(0, &second, is_empty);
    return join.Finish();
  }

  MultiHeadProjections heads_;
  MultiHeadInput input_;
  std::vector<float> outputs_;
};

TEST_F(HeadJoinTest, HeadsAreJoinedInTheirOrder) {
  ASSERT_OK(Join(kHuge, -kHuge));
  EXPECT_THAT(outputs_, ElementsAre(kHuge, -kHuge));
}

TEST_F(HeadJoinTest, ABlockForgetsTheOneBefore) {
  heads_.output = Projection{{1, 2, {1, 2}}, {}};
  HeadJoin join(input_, 3);
  const float found = 1;
  std::vector<float> outputs(4);
  for (const std::int64_t first : {0, 3}) {
    const std::int64_t count = first == 0 ? 3 : 1;
    join.Start(count, outputs.data() + first);
    for (const std::int64_t head : {0, 1}) {
      join.StartHead(head);
      for (std::int64_t i = 0; i < count; ++i) join.Add(i, &found, false);
    }
    ASSERT_OK(join.Finish());
  }
  EXPECT_THAT(outputs, Each(3));
}

TEST_F(HeadJoinTest, ASumOfValuesThatOverflowsIsRefused) {
  EXPECT_THAT(Join(1, kInfinity),
              StatusIs(kInvalid, HasSubstr("history: got values whose weighted "
                                           "sum, or its projection, "
                                           "overflows")));
}

TEST_F(HeadJoinTest, HeadsAreAddedPastTheEndOfTheFloats) {
  heads_.output = Projection{{2, 2, {1, -1, 0, 1}}, {2, 3}};
  ASSERT_OK(Join(kHuge, kHuge));
  EXPECT_THAT(outputs_, ElementsAre(2, kHuge));
}

TEST_F(HeadJoinTest, AProjectionThatOverflowsIsRefused) {
  const auto refused =
      StatusIs(kInvalid, HasSubstr("history: got values whose weighted sum"));
  // Both heads together, then one head alone, each plus the bias.
  heads_.output = Projection{{2, 2, {1, 1, 0, 1}}, {}};
  EXPECT_THAT(Join(kHuge, kHuge), refused);
  heads_.output = Projection{{2, 2, {2, 0, 0, 1}}, {}};
  EXPECT_THAT(Join(kHuge, 1), refused);
  heads_.output = Projection{{2, 2, {1, 0, 0, 1}}, {kHuge, 0}};
  EXPECT_THAT(Join(kHuge, 1), refused);
}

TEST_F(HeadJoinTest, AnEmptyQueryGetsZerosPastTheBias) {
  ASSERT_OK(Join(0, 0, true));
  EXPECT_THAT(outputs_, Each(0));
  heads_.output = Projection{{2, 2, {1, 1, 1, 1}}, {2, 3}};
  ASSERT_OK(Join(0, 0));
  EXPECT_THAT(outputs_, ElementsAre(2, 3));
  ASSERT_OK(Join(0, 0, true));
  EXPECT_THAT(outputs_, Each(0));
}

}  // namespace
}  // namespace attendant
