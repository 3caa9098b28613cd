// All cases of PyTorch's nn.MultiheadAttention.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/attention/heads/multi_head.h"
#include "tests/support/status_matchers.h"
#include "tests/support/torch_cases.h"

namespace attendant {
namespace {

constexpr double kTolerance = 1e-5;

TEST(TorchParityTest, OutputsAndWeightsOfAllCasesAgree) {
  for (const TorchCase& torch : LoadTorchCases()) {
    SCOPED_TRACE(torch.name);
    ASSERT_OK(ValidateModel({torch.heads}));
    std::size_t out = 0;
    std::size_t weight = 0;
    for (std::int64_t b = 0; b < torch.batch_size; ++b) {
      std::vector<bool> padding(static_cast<std::size_t>(torch.key_count));
      for (const std::int32_t position : torch.padding_of(b)) {
        padding[position] = true;
      }
      std::vector<std::int32_t> attended;
      for (std::int32_t i = 0; i < torch.key_count; ++i) {
        if (!padding[i]) attended.push_back(i);
      }
      MultiHeadInput input;
      input.heads = &torch.heads;
      input.queries = torch.queries_of(b);
      input.keys = torch.keys_of(b);
      input.values = torch.values_of(b);
      input.mask.attended = attended;
      input.mask.forbidden = torch.attn_mask;
      std::vector<float> outputs(
          static_cast<std::size_t>(torch.query_count * input.output_dim()));
      std::vector<float> weights(static_cast<std::size_t>(
          input.head_count() * torch.query_count * torch.key_count));
      ASSERT_OK_AND_ASSIGN(
          const std::int64_t scored_count,
          AttendMultiHead(input, outputs.data(), weights.data()));
      EXPECT_GT(scored_count, 0);
      for (const float got : outputs) {
        EXPECT_NEAR(got, torch.out[out++], kTolerance);
      }
      for (const float got : weights) {
        const double want = torch.weights[weight++];
        EXPECT_NEAR(got, want, kTolerance);
        if (want == 0) {
          EXPECT_EQ(got, 0) << "a masked key";
        }
      }
    }
    EXPECT_EQ(out, torch.out.size());
    EXPECT_EQ(weight, torch.weights.size());
  }
}

// The wire's causal flag means the same as a triangular attn_mask.
TEST(TorchParityTest, CausalIsTheTriangularMask) {
  int found = 0;
  for (const TorchCase& torch : LoadTorchCases()) {
    if (torch.name.find("causal") == std::string::npos) continue;
    ++found;
    MultiHeadInput input;
    input.heads = &torch.heads;
    input.queries = torch.queries_of(0);
    input.keys = torch.keys_of(0);
    input.values = torch.values_of(0);
    input.mask.causal = true;
    std::vector<float> outputs(torch.out.size());
    ASSERT_OK(AttendMultiHead(input, outputs.data()));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_NEAR(outputs[i], torch.out[i], kTolerance);
    }
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace attendant
