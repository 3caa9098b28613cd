#include "client/commands/models/model_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/files/npy.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/models/probe.h"
#include "service/convert/model.h"
#include "tests/client/safetensors_bytes.h"
#include "tests/client/temporary_file.h"
#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Tensors = std::vector<NamedTensor>;

absl::StatusOr<ImportedModel> Import(const Tensors& tensors,
                                     const LayoutOptions& options) {
  const TemporaryFile file("model.safetensors", SafetensorsBytes(tensors));
  const auto files = TensorFiles::Open({file.path()});
  if (!files.ok()) return files.status();
  return ModelFromTensors(*files, options);
}

LayoutOptions Heads(std::int64_t head_count) {
  LayoutOptions options;
  options.head_count = head_count;
  return options;
}

// Converts a valid model to core's type.
absl::StatusOr<AttentionModel> ImportToCore(const Tensors& tensors,
                                            const LayoutOptions& options) {
  const auto imported = Import(tensors, options);
  if (!imported.ok()) return imported.status();
  auto model = ModelFromProto(imported->model);
  if (!model.ok()) return model.status();
  const absl::Status valid = ValidateModel(*model);
  if (!valid.ok()) return valid;
  return model;
}

NamedTensor TensorOf(const std::string& name, const Matrix& matrix) {
  return F32Tensor(name, {matrix.row_count, matrix.column_count}, matrix.data);
}

NamedTensor TensorOf(const std::string& name, const std::vector<float>& bias) {
  return F32Tensor(name, {static_cast<std::int64_t>(bias.size())}, bias);
}

std::vector<float> Joined(const std::vector<std::vector<float>>& parts) {
  std::vector<float> joined;
  for (const auto& part : parts) {
    joined.insert(joined.end(), part.begin(), part.end());
  }
  return joined;
}

Matrix Transposed(const Matrix& matrix) {
  Matrix transposed = {matrix.column_count, matrix.row_count, {}};
  for (std::int64_t c = 0; c < matrix.column_count; ++c) {
    for (std::int64_t r = 0; r < matrix.row_count; ++r) {
      transposed.data.push_back(matrix.view().Row(r)[c]);
    }
  }
  return transposed;
}

// The tensors of nn.MultiheadAttention(dim, head_count) for self-attention.
MultiHeadProjections SquareHeads(std::int64_t dim, std::int64_t head_count) {
  RandomFloats random(1);
  MultiHeadProjections heads;
  heads.head_count = head_count;
  heads.query = random.Projection(dim, dim);
  heads.key = random.Projection(dim, dim);
  heads.value = random.Projection(dim, dim);
  heads.output = random.Projection(dim, dim);
  return heads;
}

Tensors OutputTensors(const MultiHeadProjections& heads) {
  return {TensorOf("out_proj.weight", heads.output->weight),
          TensorOf("out_proj.bias", heads.output->bias)};
}

std::vector<float> InBias(const MultiHeadProjections& heads) {
  return Joined({heads.query.bias, heads.key.bias, heads.value->bias});
}

Tensors Packed(const MultiHeadProjections& heads) {
  Tensors tensors = OutputTensors(heads);
  const std::int64_t dim = heads.query.input_dim();
  tensors.push_back(
      F32Tensor("in_proj_weight", {3 * dim, dim},
                Joined({heads.query.weight.data, heads.key.weight.data,
                        heads.value->weight.data})));
  tensors.push_back(TensorOf("in_proj_bias", InBias(heads)));
  return tensors;
}

Tensors Split(const MultiHeadProjections& heads) {
  Tensors tensors = OutputTensors(heads);
  tensors.push_back(TensorOf("q_proj_weight", heads.query.weight));
  tensors.push_back(TensorOf("k_proj_weight", heads.key.weight));
  tensors.push_back(TensorOf("v_proj_weight", heads.value->weight));
  tensors.push_back(TensorOf("in_proj_bias", InBias(heads)));
  return tensors;
}

Tensors Linears(const MultiHeadProjections& heads) {
  Tensors tensors = OutputTensors(heads);
  for (const auto& [name, projection] :
       {std::pair{"q_proj", &heads.query}, std::pair{"k_proj", &heads.key},
        std::pair{"v_proj", &*heads.value}}) {
    tensors.push_back(
        TensorOf(absl::StrCat(name, ".weight"), projection->weight));
    tensors.push_back(TensorOf(absl::StrCat(name, ".bias"), projection->bias));
  }
  return tensors;
}

// W_i [input, head dim] of each head, x W; from `first` on.
Tensors PerHead(const MultiHeadProjections& heads, int first) {
  Tensors tensors = {TensorOf("W_O", Transposed(heads.output->weight)),
                     TensorOf("b_O", heads.output->bias)};
  for (const auto& [letter, projection] :
       {std::pair{"Q", &heads.query}, std::pair{"K", &heads.key},
        std::pair{"V", &*heads.value}}) {
    const std::int64_t dim = projection->output_dim() / heads.head_count;
    for (std::int64_t h = 0; h < heads.head_count; ++h) {
      Matrix rows = {dim, projection->input_dim(), {}};
      const auto at =
          projection->weight.data.begin() + h * dim * rows.column_count;
      rows.data.assign(at, at + dim * rows.column_count);
      const std::string end = absl::StrCat("_", letter, "_", first + h);
      tensors.push_back(TensorOf("W" + end, Transposed(rows)));
      if (projection->bias.empty()) continue;
      const auto bias = projection->bias.begin() + h * dim;
      tensors.push_back(
          TensorOf("b" + end, std::vector<float>(bias, bias + dim)));
    }
  }
  return tensors;
}

// Attends with 3 queries over 4 keys.
std::vector<float> OutputsOf(const AttentionModel& model) {
  RandomFloats random(7);
  const Matrix queries = random.Matrix(3, model.query_dim());
  const Matrix keys = random.Matrix(4, model.key_dim());
  const Matrix values = random.Matrix(4, model.value_dim());
  MultiHeadInput input;
  input.heads = model.multi_head();
  input.queries = queries.view();
  input.keys = keys.view();
  input.values = values.view();
  std::vector<float> outputs(static_cast<std::size_t>(3 * input.output_dim()));
  EXPECT_OK(AttendMultiHead(input, outputs.data()));
  return outputs;
}

// The same four square layers in each layout.
TEST(ModelLayoutTest, EveryLayoutOfTheSameWeightsIsTheSameModel) {
  const MultiHeadProjections heads = SquareHeads(6, 3);
  const AttentionModel want = {heads};
  for (const Tensors& tensors : {Packed(heads), Split(heads), Linears(heads),
                                 PerHead(heads, 0), PerHead(heads, 1)}) {
    ASSERT_OK_AND_ASSIGN(const AttentionModel got,
                         ImportToCore(tensors, Heads(3)));
    EXPECT_EQ(got, want);
    EXPECT_EQ(OutputsOf(got), OutputsOf(want));
  }
}

// By the formula of the paper: head_i = Attention(Q W_Q_i, K W_K_i, V W_V_i),
// and their concatenation times W_O.
TEST(ModelLayoutTest, PerHeadMatricesMeanWhatThePaperSays) {
  const std::int64_t input_dim = 4;
  const std::int64_t key_dim = 2;
  const std::int64_t value_dim = 3;
  RandomFloats random(3);
  std::vector<Matrix> matrices;  // W_Q_1, W_K_1, W_V_1, W_Q_2, ...
  Tensors tensors;
  for (int head = 1; head <= 2; ++head) {
    for (const char* letter : {"Q", "K", "V"}) {
      matrices.push_back(
          random.Matrix(input_dim, *letter == 'V' ? value_dim : key_dim));
      tensors.push_back(
          TensorOf(absl::StrCat("W_", letter, "_", head), matrices.back()));
    }
  }
  const Matrix output = random.Matrix(2 * value_dim, input_dim);
  tensors.push_back(TensorOf("W_O", output));
  ASSERT_OK_AND_ASSIGN(const AttentionModel model,
                       ImportToCore(tensors, LayoutOptions()));
  EXPECT_EQ(model.head_count(), 2);
  // d_k = 2 and d_v = 3 though d_model / heads = 2: nothing must divide.
  EXPECT_EQ(model.multi_head()->head_key_dim(), 2);
  EXPECT_EQ(model.multi_head()->head_value_dim(4), 3);

  RandomFloats same(7);
  const Matrix queries = same.Matrix(3, input_dim);
  const Matrix keys = same.Matrix(4, input_dim);
  const Matrix values = same.Matrix(4, input_dim);
  const auto times = [](std::span<const float> x, const Matrix& w) {
    std::vector<double> product(static_cast<std::size_t>(w.column_count));
    for (std::int64_t c = 0; c < w.column_count; ++c) {
      for (std::int64_t r = 0; r < w.row_count; ++r) {
        product[c] += static_cast<double>(x[r]) * w.view().Row(r)[c];
      }
    }
    return product;
  };
  const std::vector<float> got = OutputsOf(model);
  for (std::int64_t i = 0; i < 3; ++i) {
    std::vector<double> concat;
    for (int head = 0; head < 2; ++head) {
      const auto q = times(queries.view().Row(i), matrices[3 * head]);
      std::vector<double> exps;
      double sum = 0;
      for (std::int64_t j = 0; j < 4; ++j) {
        const auto k = times(keys.view().Row(j), matrices[3 * head + 1]);
        exps.push_back(std::exp((q[0] * k[0] + q[1] * k[1]) / std::sqrt(2.0)));
        sum += exps.back();
      }
      std::vector<double> pooled(3);
      for (std::int64_t j = 0; j < 4; ++j) {
        const auto v = times(values.view().Row(j), matrices[3 * head + 2]);
        for (int d = 0; d < 3; ++d) pooled[d] += exps[j] / sum * v[d];
      }
      concat.insert(concat.end(), pooled.begin(), pooled.end());
    }
    for (std::int64_t d = 0; d < input_dim; ++d) {
      double want = 0;
      for (int c = 0; c < 6; ++c) want += concat[c] * output.view().Row(c)[d];
      // All numbers are below 1: sums of 4 make projections below 4, logits
      // below 2 x 16 / sqrt(2), off by 16 roundings of that; outputs below
      // 6 x 4 then by twice the logits' error and some 32 roundings more.
      const double logit_error = 16 * 0x1p-24 * 23;
      EXPECT_NEAR(got[i * input_dim + d], want,
                  24 * (2 * logit_error + 0x1p-20 + 32 * 0x1p-24));
    }
  }
}

TEST(ModelLayoutTest, SplitKeepsItsOwnKeyAndValueDimensions) {
  RandomFloats random(1);
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = random.Projection(4, 4);
  heads.key = random.Projection(4, 3);
  heads.value = random.Projection(4, 5);
  heads.output = random.Projection(4, 4);
  ASSERT_OK_AND_ASSIGN(const AttentionModel got,
                       ImportToCore(Split(heads), Heads(2)));
  EXPECT_EQ(got, AttentionModel{heads});
  EXPECT_EQ(got.key_dim(), 3);
  EXPECT_EQ(got.value_dim(), 5);
}

TEST(ModelLayoutTest, BiasesMayBeMissing) {
  MultiHeadProjections heads = SquareHeads(4, 2);
  for (Projection* projection :
       {&heads.query, &heads.key, &*heads.value, &*heads.output}) {
    projection->bias.clear();
  }
  for (Tensors tensors :
       {Packed(heads), Split(heads), Linears(heads), PerHead(heads, 1)}) {
    std::erase_if(tensors, [](const NamedTensor& tensor) {
      return tensor.bytes.empty();
    });
    ASSERT_OK_AND_ASSIGN(const AttentionModel got,
                         ImportToCore(tensors, Heads(2)));
    EXPECT_EQ(got, AttentionModel{heads});
  }
}

TEST(ModelLayoutTest, BilinearAndAdditive) {
  const AttentionModel bilinear = RandomBilinearModel(1);
  ASSERT_OK_AND_ASSIGN(
      const AttentionModel form,
      ImportToCore({TensorOf("W", bilinear.bilinear()->weight)}, {}));
  EXPECT_EQ(form, bilinear);
  const AttentionModel additive = RandomAdditiveModel(1);
  ASSERT_OK_AND_ASSIGN(
      const AttentionModel network,
      ImportToCore({TensorOf("W", additive.additive()->query_weight),
                    TensorOf("U", additive.additive()->key_weight),
                    TensorOf("v", additive.additive()->output_weight)},
                   {}));
  EXPECT_EQ(network, additive);
  EXPECT_THAT(Import({TensorOf("W", bilinear.bilinear()->weight)}, Heads(2)),
              StatusIs(kInvalid, HasSubstr("--heads: got 2, want none")));
}

// The server decides which models are too large.
TEST(ModelLayoutTest, WeightsMayTakeMoreThanAMessageOfDefaultSize) {
  constexpr std::int64_t kSide = 2100;
  ASSERT_OK_AND_ASSIGN(const ImportedModel imported,
                       Import({F32Tensor("W", {kSide, kSide},
                                         std::vector<float>(kSide * kSide, 1))},
                              {}));
  EXPECT_GT(imported.model.ByteSizeLong(), 16u << 20);
}

TEST(ModelLayoutTest, PrefixChoosesOneModuleOfMany) {
  MultiHeadProjections first = SquareHeads(4, 2);
  MultiHeadProjections second = first;
  second.query.weight.data[0] = 42;
  Tensors tensors;
  for (const auto& [prefix, heads] :
       {std::pair{"layers.0.self_attn.", &first},
        std::pair{"layers.1.self_attn.", &second}}) {
    for (NamedTensor tensor : Packed(*heads)) {
      tensor.name = prefix + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  LayoutOptions options = Heads(2);
  options.prefix = "layers.1.self_attn.";
  ASSERT_OK_AND_ASSIGN(const AttentionModel got,
                       ImportToCore(tensors, options));
  EXPECT_EQ(got, AttentionModel{second});
  options.prefix = "";
  EXPECT_THAT(Import(tensors, options),
              StatusIs(kInvalid, AllOf(HasSubstr("no layout known"),
                                       HasSubstr("layers.0.self_attn"))));
  options.prefix = "nothing.";
  EXPECT_THAT(Import(tensors, options),
              StatusIs(kInvalid, HasSubstr("--prefix: got 'nothing.'")));
}

TEST(ModelLayoutTest, TellsWhatItDidNotUse) {
  Tensors tensors = Packed(SquareHeads(4, 2));
  tensors.push_back(F32Tensor("norm.weight", {4}, {1, 1, 1, 1}));
  ASSERT_OK_AND_ASSIGN(const ImportedModel got, Import(tensors, Heads(2)));
  EXPECT_THAT(got.unused, ElementsAre("norm.weight"));
}

// The head count must divide the width only for heads of the default size.
TEST(ModelLayoutTest, HeadsMustDivideRowsThatTheyShare) {
  const MultiHeadProjections heads = SquareHeads(8, 1);
  for (const Tensors& tensors : {Packed(heads), Split(heads), Linears(heads)}) {
    EXPECT_THAT(Import(tensors, Heads(3)),
                StatusIs(kInvalid, HasSubstr("got 8 rows a projection, want a "
                                             "multiple of the 3 heads")));
    EXPECT_THAT(Import(tensors, {}),
                StatusIs(kInvalid, HasSubstr("--heads: got none")));
  }
  EXPECT_THAT(Import(PerHead(SquareHeads(8, 2), 1), Heads(4)),
              StatusIs(kInvalid, HasSubstr("--heads: got 4, want 2")));
}

TEST(ModelLayoutTest, ShapesTheWrongWayRoundAreNamed) {
  RandomFloats random(1);
  EXPECT_THAT(
      Import({TensorOf("in_proj_weight", random.Matrix(4, 12))}, Heads(2)),
      StatusIs(kInvalid, AllOf(HasSubstr("tensor in_proj_weight: got [4, 12]"),
                               HasSubstr("it is transposed"))));
  Tensors split = {TensorOf("q_proj_weight", random.Matrix(4, 4)),
                   TensorOf("k_proj_weight", random.Matrix(3, 4))};
  EXPECT_THAT(
      Import(split, Heads(2)),
      StatusIs(kInvalid, HasSubstr("k_proj_weight: got [3, 4], want [4, any]: "
                                   "it is transposed")));
  Tensors per_head = PerHead(SquareHeads(6, 2), 1);
  for (NamedTensor& tensor : per_head) {
    if (tensor.name == "W_K_2") std::swap(tensor.shape[0], tensor.shape[1]);
  }
  EXPECT_THAT(Import(per_head, {}),
              StatusIs(kInvalid, HasSubstr("W_K_2: got [3, 6], want [6, 3]: "
                                           "it is transposed")));
}

// A transposed square matrix has the right shape: only a probe finds it.
TEST(ModelLayoutTest, SquareMatrixTheWrongWayRoundIsCaughtByAProbe) {
  MultiHeadProjections heads = SquareHeads(4, 2);
  ASSERT_OK_AND_ASSIGN(
      const v1::ProjectionProbe wire,
      ParseProbe(R"({"projection": "query", "input": [1, 0, 0, 0],
                     "output": [0.5, 0.25, 0, -1]})"));
  // The first column and the bias of W_Q.
  for (int r = 0; r < 4; ++r) {
    heads.query.weight.data[4 * r] = std::vector{0.5F, 0.25F, 0.F, -1.F}[r];
    heads.query.bias[r] = 0;
  }
  google::protobuf::RepeatedPtrField<v1::ProjectionProbe> wires;
  *wires.Add() = wire;
  ASSERT_OK_AND_ASSIGN(const auto probes, ProbesFromProto(wires));
  ASSERT_OK_AND_ASSIGN(const AttentionModel right,
                       ImportToCore(Split(heads), Heads(2)));
  EXPECT_OK(CheckProbe(right, probes[0], "probes[0]"));
  heads.query.weight = Transposed(heads.query.weight);
  ASSERT_OK_AND_ASSIGN(const AttentionModel wrong,
                       ImportToCore(Split(heads), Heads(2)));
  EXPECT_THAT(CheckProbe(wrong, probes[0], "probes[0]"),
              StatusIs(kInvalid, HasSubstr("the transposed matrix gives it")));
}

TEST(ModelLayoutTest, WhatDoesNotBelongTogetherIsRefused) {
  const MultiHeadProjections heads = SquareHeads(4, 2);
  Tensors both = Packed(heads);
  for (NamedTensor& tensor : Linears(heads)) {
    if (tensor.name.substr(0, 3) != "out") both.push_back(tensor);
  }
  EXPECT_THAT(Import(both, Heads(2)),
              StatusIs(kInvalid, HasSubstr("tensors of two layouts")));
  Tensors incomplete = Packed(heads);
  std::erase_if(incomplete, [](const NamedTensor& tensor) {
    return tensor.name == "out_proj.weight";
  });
  EXPECT_THAT(Import(incomplete, Heads(2)),
              StatusIs(kInvalid, HasSubstr("no tensor out_proj.weight")));
  Tensors more = Packed(heads);
  more.push_back(F32Tensor("bias_k", {1, 1, 4}, {1, 1, 1, 1}));
  EXPECT_THAT(
      Import(more, Heads(2)),
      StatusIs(kInvalid, AllOf(HasSubstr("bias_k"), HasSubstr("add_bias_kv"))));
  Tensors gap = PerHead(heads, 1);
  for (NamedTensor& tensor : gap) {
    if (tensor.name == "W_Q_2") tensor.name = "W_Q_3";
  }
  EXPECT_THAT(Import(gap, {}),
              StatusIs(kInvalid, HasSubstr("belongs to none of the heads")));
  Tensors short_bias = Packed(heads);
  for (NamedTensor& tensor : short_bias) {
    if (tensor.name == "in_proj_bias") {
      tensor = F32Tensor("in_proj_bias", {4}, {1, 2, 3, 4});
    }
  }
  EXPECT_THAT(
      Import(short_bias, Heads(2)),
      StatusIs(kInvalid, HasSubstr("tensor in_proj_bias: got [4], want [12]")));
  // W alone would be a bilinear model.
  const NamedTensor w = F32Tensor("W", {2, 2}, {1, 2, 3, 4});
  const NamedTensor u = F32Tensor("U", {2, 2}, {5, 6, 7, 8});
  const NamedTensor v = F32Tensor("v", {2}, {9, 10});
  EXPECT_THAT(Import({w, u}, {}),
              StatusIs(kInvalid, HasSubstr("no tensor v, which the layout")));
  EXPECT_THAT(Import({w, v}, {}),
              StatusIs(kInvalid, HasSubstr("no tensor U, which the layout")));
  EXPECT_OK(Import({w}, {}).status());
}

TEST(ModelConfigTest, DropoutIsAcceptedAndIgnored) {
  ASSERT_OK_AND_ASSIGN(
      const ModelConfig config,
      ParseModelConfig(R"({"embed_dim": 4, "num_heads": 2, "dropout": 0.1,
                           "bias": true, "add_bias_kv": false,
                           "batch_first": true, "kdim": null})"));
  EXPECT_EQ(config.head_count, 2);
  EXPECT_EQ(config.embed_dim, 4);
  EXPECT_EQ(config.key_dim, std::nullopt);
  EXPECT_EQ(config.dropout, 0.1);
  const MultiHeadProjections heads = SquareHeads(4, 2);
  LayoutOptions options;
  options.head_count = config.head_count;
  ASSERT_OK_AND_ASSIGN(const ImportedModel got, Import(Packed(heads), options));
  EXPECT_OK(CheckConfig(config, got.model));
}

TEST(ModelConfigTest, MustAgreeWithTheWeights) {
  ASSERT_OK_AND_ASSIGN(const ImportedModel got,
                       Import(Packed(SquareHeads(4, 2)), Heads(2)));
  for (const auto& [text, what] :
       std::vector<std::pair<std::string, std::string>>{
           {R"({"num_heads": 4})", "num_heads: got 4, want 2"},
           {R"({"num_attention_heads": 4})", "num_heads: got 4, want 2"},
           {R"({"embed_dim": 8})", "embed_dim: got 8, want 4"},
           {R"({"kdim": 3})", "kdim: got 3, want 4"},
           {R"({"vdim": 5})", "vdim: got 5, want 4"}}) {
    ASSERT_OK_AND_ASSIGN(const ModelConfig config, ParseModelConfig(text));
    EXPECT_THAT(CheckConfig(config, got.model),
                StatusIs(kInvalid, HasSubstr(what)));
  }
}

TEST(ModelConfigTest, NamesWhatIsWrong) {
  for (const auto& [text, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"[]", "JSON object"},
           {R"({"num_heads": 0})", "num_heads: got 0"},
           {R"({"num_heads": "8"})", "num_heads: got \"8\""},
           {R"({"dropout": "no"})", "dropout: got \"no\""},
           {R"({"add_bias_kv": true})", "add_bias_kv: got true"},
           {R"({"add_zero_attn": true})", "add_zero_attn: got true"}}) {
    EXPECT_THAT(ParseModelConfig(text), StatusIs(kInvalid, HasSubstr(what)));
  }
}

TEST(ParseProbeTest, NamesWhatIsWrong) {
  for (const auto& [text, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "JSON object"},
           {R"({"input": [1], "output": [1]})", "projection: got null"},
           {R"({"projection": "keys", "input": [1], "output": [1]})",
            "projection: got \"keys\""},
           {R"({"projection": "key", "output": [1]})", "input: want an array"},
           {R"({"projection": "key", "input": [1], "output": ["1"]})",
            "output: want an array"},
           {R"({"projection": "key", "input": [1e39], "output": [1]})",
            "input: want an array of finite"}}) {
    EXPECT_THAT(ParseProbe(text), StatusIs(kInvalid, HasSubstr(what)));
  }
}

}  // namespace
}  // namespace attendant
