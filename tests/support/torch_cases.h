// The cases of tests/data/mha/torch.json, with inputs and weights rebuilt as
// its `doc` field says. Needs TORCH_CASES_PATH, the file's path.
#ifndef ATTENDANT_TESTS_SUPPORT_TORCH_CASES_H_
#define ATTENDANT_TESTS_SUPPORT_TORCH_CASES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/attention/models/model.h"
#include "core/base/views.h"
#include "tests/support/split_mix.h"

namespace attendant {

// One call of nn.MultiheadAttention, batch_first.
struct TorchCase {
  std::string name;
  std::int64_t batch_size = 0;
  std::int64_t query_count = 0;  // L
  std::int64_t key_count = 0;    // S
  Matrix queries;                // [batch_size x L, E]
  Matrix keys;                   // [batch_size x S, kdim]
  Matrix values;                 // [batch_size x S, vdim]
  MultiHeadProjections heads;
  // [L, S], or empty; nonzero: the query may not attend to the key.
  std::vector<std::uint8_t> attn_mask;
  // [batch_size, S], or empty; nonzero: no query attends to the key.
  std::vector<std::uint8_t> key_padding_mask;
  std::vector<double> out;      // [batch_size, L, E]
  std::vector<double> weights;  // [batch_size, heads, L, S]

  // The queries of sequence `b` of the batch.
  MatrixView queries_of(std::int64_t b) const {
    return {queries.data.data() + b * query_count * queries.column_count,
            query_count, queries.column_count};
  }
  MatrixView keys_of(std::int64_t b) const {
    return {keys.data.data() + b * key_count * keys.column_count, key_count,
            keys.column_count};
  }
  MatrixView values_of(std::int64_t b) const {
    return {values.data.data() + b * key_count * values.column_count, key_count,
            values.column_count};
  }
  // The positions that no query attends to.
  std::vector<std::int32_t> padding_of(std::int64_t b) const {
    std::vector<std::int32_t> positions;
    if (key_padding_mask.empty()) return positions;
    for (std::int64_t i = 0; i < key_count; ++i) {
      if (key_padding_mask[b * key_count + i] != 0) {
        positions.push_back(static_cast<std::int32_t>(i));
      }
    }
    return positions;
  }
};

inline std::vector<std::uint8_t> FlatMask(const nlohmann::json& mask) {
  std::vector<std::uint8_t> flat;
  if (mask.is_null()) return flat;
  for (const auto& row : mask) {
    for (const auto& entry : row) flat.push_back(entry.get<int>() != 0);
  }
  return flat;
}

inline TorchCase TorchCaseFromJson(const nlohmann::json& json) {
  TorchCase torch;
  torch.name = json["name"];
  torch.batch_size = json["B"];
  torch.query_count = json["L"];
  torch.key_count = json["S"];
  torch.heads.head_count = json["heads"];
  const std::int64_t dim = json["E"];
  const std::uint64_t first_seed = json["seed"].get<std::uint64_t>() * 64;
  const auto matrix = [&](std::uint64_t index, std::int64_t rows,
                          std::int64_t columns, double scale) {
    return Matrix{rows, columns,
                  SplitMix(first_seed + index).Floats(rows * columns, scale)};
  };
  torch.queries = matrix(0, torch.batch_size * torch.query_count, dim, 1);
  torch.keys = matrix(1, torch.batch_size * torch.key_count, json["kdim"], 1);
  torch.values = matrix(2, torch.batch_size * torch.key_count, json["vdim"], 1);
  const double scale = json["w_scale"];
  torch.heads.query = {matrix(3, dim, dim, scale), {}};
  torch.heads.key = {matrix(4, dim, json["kdim"], scale), {}};
  torch.heads.value = {matrix(5, dim, json["vdim"], scale), {}};
  torch.heads.output = {matrix(7, dim, dim, scale), {}};
  if (json["bias"]) {
    const std::vector<float> in_bias =
        SplitMix(first_seed + 6).Floats(3 * dim, .125);
    torch.heads.query.bias.assign(in_bias.begin(), in_bias.begin() + dim);
    torch.heads.key.bias.assign(in_bias.begin() + dim,
                                in_bias.begin() + 2 * dim);
    torch.heads.value->bias.assign(in_bias.begin() + 2 * dim, in_bias.end());
    torch.heads.output->bias = SplitMix(first_seed + 8).Floats(dim, .125);
  }
  torch.attn_mask = FlatMask(json["attn_mask"]);
  torch.key_padding_mask = FlatMask(json["key_padding_mask"]);
  torch.out = json["out"].get<std::vector<double>>();
  torch.weights = json["weights"].get<std::vector<double>>();
  // Checks that the recipe was followed.
  const auto& probe = json["probe"];
  EXPECT_EQ(torch.queries.data.front(), probe["q0"].get<float>());
  EXPECT_EQ(torch.heads.query.weight.data.back(),
            probe["Wq_last"].get<float>());
  EXPECT_EQ(torch.heads.output->weight.data[1], probe["Wo_1"].get<float>());
  return torch;
}

inline std::vector<TorchCase> LoadTorchCases() {
  std::vector<TorchCase> cases;
  std::ifstream file(TORCH_CASES_PATH);
  EXPECT_TRUE(file) << TORCH_CASES_PATH;
  const nlohmann::json all = nlohmann::json::parse(file);
  for (const auto& json : all["cases"]) {
    SCOPED_TRACE(json["name"].get<std::string>());
    cases.push_back(TorchCaseFromJson(json));
  }
  EXPECT_EQ(cases.size(), 27u);
  return cases;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_TORCH_CASES_H_
