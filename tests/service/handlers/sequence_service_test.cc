// Attention over sequences and histories, end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "core/attention/sequences/contextualize.h"
#include "core/base/clock.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/split_mix.h"
#include "tests/support/torch_cases.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class SequenceServiceTest : public ServerFixture {
 protected:
  grpc::Status Contextualize(const v1::ContextualizeRequest& request,
                             v1::ContextualizeResponse* response) {
    grpc::ClientContext context;
    return sequence_stub_->Contextualize(&context, request, response);
  }
  grpc::Status Rank(const v1::RankCandidatesRequest& request,
                    v1::RankCandidatesResponse* response) {
    grpc::ClientContext context;
    return sequence_stub_->RankCandidates(&context, request, response);
  }

  // Adds rows of floats as tokens.
  static void AddTokens(MatrixView rows, v1::TokenSequence* sequence) {
    for (std::int64_t i = 0; i < rows.row_count; ++i) {
      SetVector(rows.Row(i), sequence->mutable_vectors()->add_vectors());
    }
  }

  // Expects the call to be refused with `code`, naming `field`.
  void ExpectRefused(const std::string& request, grpc::StatusCode code,
                     const std::string& field) {
    v1::ContextualizeResponse response;
    Expect(Contextualize(Parse<v1::ContextualizeRequest>(request), &response),
           code, field);
  }
  void ExpectRankRefused(const std::string& request, grpc::StatusCode code,
                         const std::string& field) {
    v1::RankCandidatesResponse response;
    Expect(Rank(Parse<v1::RankCandidatesRequest>(request), &response), code,
           field);
  }
  static void Expect(const grpc::Status& status, grpc::StatusCode code,
                     const std::string& field) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(FieldIn(DetailsOf(status)), field) << status.error_message();
  }
};

TEST_F(SequenceServiceTest, TokensBecomeTheMeanOfWhatTheyAttendTo) {
  v1::ContextualizeResponse response;
  const grpc::Status status =
      Contextualize(Parse<v1::ContextualizeRequest>(R"pb(
                      sequence {
                        vectors {
                          vectors { floats { values: [ 10, 0 ] } }
                          vectors { floats { values: [ 0, 10 ] } }
                        }
                      }
                      score_kind: SCORE_KIND_DOT
                      include_weights: true
                    )pb"),
                    &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.outputs_size(), 2);
  // Logits 100 and 0.
  EXPECT_THAT(response.outputs(0).floats().values(), ElementsAre(10, 0));
  ASSERT_EQ(response.head_weights_size(), 1);
  EXPECT_EQ(response.head_weights(0).row_count(), 2);
  EXPECT_EQ(response.head_weights(0).column_count(), 2);
  EXPECT_THAT(response.head_weights(0).weights(), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(response.scored_count(), 4);
  EXPECT_TRUE(response.has_compute_duration());
}

TEST_F(SequenceServiceTest, TokensMayBeItems) {
  CreateShop();
  v1::ContextualizeResponse of_items;
  grpc::Status status = Contextualize(Parse<v1::ContextualizeRequest>(R"pb(
                                        sequence {
                                          items {
                                            catalog: "shop"
                                            ids: [ "a", "b", "a" ]
                                          }
                                        }
                                        memory {
                                          items {
                                            catalog: "shop"
                                            key_field: "k"
                                            ids: [ "c", "b" ]
                                          }
                                        }
                                        causal: true
                                      )pb"),
                                      &of_items);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::ContextualizeResponse of_vectors;
  status = Contextualize(Parse<v1::ContextualizeRequest>(R"pb(
                           sequence {
                             vectors {
                               vectors { floats { values: [ 1, 0 ] } }
                               vectors { floats { values: [ 0, 1 ] } }
                               vectors { floats { values: [ 1, 0 ] } }
                             }
                           }
                           memory {
                             vectors {
                               vectors { floats { values: [ 1, 1 ] } }
                               vectors { floats { values: [ 0, 1 ] } }
                             }
                           }
                           causal: true
                         )pb"),
                         &of_vectors);
  ASSERT_TRUE(status.ok()) << status.error_message();
  of_items.clear_compute_duration();
  of_vectors.clear_compute_duration();
  EXPECT_EQ(of_items.SerializeAsString(), of_vectors.SerializeAsString());
  EXPECT_EQ(of_items.scored_count(), 1 + 2 + 2);
}

// Keys and values are memory rows [key, value] side by side, which W_K and W_V
// read a part of; a row of attn_mask is the padding of a call with one query.
TEST_F(SequenceServiceTest, AllTorchCasesAgree) {
  int number = 0;
  for (const TorchCase& torch : LoadTorchCases()) {
    SCOPED_TRACE(torch.name);
    const std::int64_t key_dim = torch.keys.column_count;
    const std::int64_t value_dim = torch.values.column_count;
    const auto widened = [&](const Projection& from, std::int64_t first) {
      Projection to = {{from.output_dim(), key_dim + value_dim, {}}, from.bias};
      to.weight.data.resize(
          static_cast<std::size_t>(to.output_dim() * to.input_dim()));
      for (std::int64_t row = 0; row < from.output_dim(); ++row) {
        std::copy_n(from.weight.data.begin() + row * from.input_dim(),
                    from.input_dim(),
                    to.weight.data.begin() + row * to.input_dim() + first);
      }
      return to;
    };
    MultiHeadProjections heads = torch.heads;
    heads.key = widened(torch.heads.key, 0);
    heads.value = widened(*torch.heads.value, key_dim);
    const std::string name = absl::StrCat("torch", number++);
    CreateModel(name, {heads});
    const std::int64_t dim = torch.queries.column_count;
    for (std::int64_t b = 0; b < torch.batch_size; ++b) {
      v1::ContextualizeRequest request;
      request.add_layers()->set_name(name);
      request.set_include_weights(true);
      Matrix memory = {torch.key_count, key_dim + value_dim, {}};
      for (std::int64_t i = 0; i < torch.key_count; ++i) {
        for (const MatrixView part : {torch.keys_of(b), torch.values_of(b)}) {
          memory.data.insert(memory.data.end(), part.Row(i).begin(),
                             part.Row(i).end());
        }
      }
      AddTokens(memory.view(), request.mutable_memory());
      for (std::int64_t q = 0; q < torch.query_count; ++q) {
        request.clear_sequence();
        AddTokens({torch.queries_of(b).Row(q).data(), 1, dim},
                  request.mutable_sequence());
        request.clear_padding_positions();
        for (const std::int32_t position : torch.padding_of(b)) {
          request.add_padding_positions(position);
        }
        for (std::int32_t i = 0;
             i < torch.key_count && !torch.attn_mask.empty(); ++i) {
          if (torch.attn_mask[q * torch.key_count + i] != 0) {
            request.add_padding_positions(i);
          }
        }
        v1::ContextualizeResponse response;
        const grpc::Status status = Contextualize(request, &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        const auto& output = response.outputs(0).floats().values();
        ASSERT_EQ(output.size(), dim);
        for (std::int64_t d = 0; d < dim; ++d) {
          EXPECT_NEAR(output[static_cast<int>(d)],
                      torch.out[(b * torch.query_count + q) * dim + d], 1e-5);
        }
        ASSERT_EQ(response.head_weights_size(), heads.head_count);
        for (std::int64_t head = 0; head < heads.head_count; ++head) {
          const auto& weights =
              response.head_weights(static_cast<int>(head)).weights();
          ASSERT_EQ(weights.size(), torch.key_count);
          for (std::int64_t i = 0; i < torch.key_count; ++i) {
            const std::int64_t at =
                ((b * heads.head_count + head) * torch.query_count + q) *
                    torch.key_count +
                i;
            EXPECT_NEAR(weights[static_cast<int>(i)], torch.weights[at], 1e-5);
          }
        }
      }
    }
  }
  EXPECT_EQ(number, 27);
}

TEST_F(SequenceServiceTest, LayersPositionsAndTheRestReachTheEngine) {
  SplitMix random(1);
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = {{4, 4, random.Floats(16)}, {}};
  heads.key = {{4, 4, random.Floats(16)}, {}};
  heads.value = {{{4, 4, random.Floats(16)}, {}}};
  const AttentionModel first = {heads};
  heads.output = {{{6, 4, random.Floats(24)}, {}}};
  const AttentionModel second = {heads};
  CreateModel("block", first);
  CreateModel("block", second);
  const Matrix tokens = {5, 4, random.Floats(20)};
  v1::ContextualizeRequest request = Parse<v1::ContextualizeRequest>(R"pb(
    layers { name: "block" version: 1 }
    layers { name: "block" }
    score_kind: SCORE_KIND_COSINE
    temperature: 0.25
    causal: true
    padding_positions: 2
    positions: POSITION_KIND_SINUSOIDAL
    include_weights: true
  )pb");
  AddTokens(tokens.view(), request.mutable_sequence());
  v1::ContextualizeResponse response;
  const grpc::Status status = Contextualize(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const AttentionModel* layers[] = {&first, &second};
  const std::vector<std::int32_t> padding = {2};
  ContextualizeInput input;
  input.sequence = tokens.view();
  input.layers = layers;
  input.score_kind = ScoreKind::kCosine;
  input.temperature = .25;
  input.causal = true;
  input.padding_positions = padding;
  input.positions = PositionKind::kSinusoidal;
  input.include_weights = true;
  ASSERT_OK_AND_ASSIGN(const SequenceContext want,
                       attendant::Contextualize(input));
  ASSERT_EQ(response.outputs_size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(response.outputs(i).floats().values(),
                testing::ElementsAreArray(want.outputs.view().Row(i)));
  }
  ASSERT_EQ(response.head_weights_size(), 2);
  EXPECT_THAT(response.head_weights(1).weights(),
              testing::ElementsAreArray(want.head_weights[1].data));
}

TEST_F(SequenceServiceTest, ContextualizeErrorsNameTheirFields) {
  CreateShop();
  constexpr grpc::StatusCode kInvalidRpc = grpc::StatusCode::INVALID_ARGUMENT;
  constexpr grpc::StatusCode kNotFound = grpc::StatusCode::NOT_FOUND;
  const std::string tokens =
      "sequence { vectors { vectors { floats { values: [1, 2] } } } } ";
  ExpectRefused("", kInvalidRpc, "sequence");
  ExpectRefused("sequence { vectors {} }", kInvalidRpc,
                "sequence.vectors.vectors");
  ExpectRefused("sequence { vectors { vectors {} } }", kInvalidRpc,
                "sequence.vectors.vectors[0].encoding");
  ExpectRefused(
      "sequence { vectors { vectors { floats { values: [1, nan] } } } }",
      kInvalidRpc, "sequence.vectors.vectors[0][1]");
  ExpectRefused(
      "sequence { vectors { vectors { floats { values: [1, 2] } } "
      "vectors { floats { values: 1 } } } }",
      kInvalidRpc, "sequence.vectors.vectors[1]");
  ExpectRefused("sequence { items { ids: 'a' } }", kInvalidRpc,
                "sequence.items.catalog");
  ExpectRefused("sequence { items { catalog: 'none' ids: 'a' } }", kNotFound,
                "");
  ExpectRefused("sequence { items { catalog: 'shop' ids: ['a', 'x'] } }",
                kNotFound, "");
  ExpectRefused("sequence { items { catalog: 'shop' } }", kInvalidRpc,
                "sequence.items.ids");
  ExpectRefused(
      "sequence { items { catalog: 'shop' key_field: 'x' ids: 'a' } }",
      kInvalidRpc, "sequence.items.key_field");
  ExpectRefused(tokens + "memory {}", kInvalidRpc, "memory");
  ExpectRefused(tokens + "layers {}", kInvalidRpc, "layers[0].name");
  ExpectRefused(tokens + "layers { name: 'none' }", kNotFound, "");
  ExpectRefused(tokens + "temperature: 0", kInvalidRpc, "temperature");
  ExpectRefused(tokens + "temperature: inf", kInvalidRpc, "temperature");
  ExpectRefused(tokens + "score_kind: SCORE_KIND_ADDITIVE", kInvalidRpc,
                "score_kind");
  ExpectRefused(tokens + "score_kind: 77", kInvalidRpc, "score_kind");
  ExpectRefused(tokens + "positions: 9", kInvalidRpc, "positions");
  ExpectRefused(tokens + "padding_positions: [0, 1]", kInvalidRpc,
                "padding_positions[1]");
  ExpectRefused(tokens + "padding_positions: -1", kInvalidRpc,
                "padding_positions[0]");
  ExpectRefused(
      "sequence { vectors { vectors { floats { values: [0, 0] } } } } "
      "score_kind: SCORE_KIND_COSINE",
      kInvalidRpc, "sequence.vectors.vectors[0]");
  const std::string memory =
      tokens +
      "memory { vectors { vectors { floats { values: [1, 2] } } "
      "vectors { floats { values: [0, 0] } } } } "
      "score_kind: SCORE_KIND_COSINE ";
  ExpectRefused(memory, kInvalidRpc, "memory.vectors.vectors[1]");
  // No token attends to it.
  v1::ContextualizeResponse response;
  EXPECT_TRUE(Contextualize(Parse<v1::ContextualizeRequest>(
                                memory + "padding_positions: 1"),
                            &response)
                  .ok());
}

// The server refuses it before computing, so an error that only computing would
// find does not appear.
TEST_F(SequenceServiceTest, AReplyThatCannotFitIsRefusedBeforeItIsComputed) {
  CreateShop();
  const auto expect_too_large = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(),
                testing::HasSubstr("the reply would take more than 16777216"));
  };
  // Projects one component to 65,536: 256 KiB per token, so 64 tokens fill a
  // message.
  MultiHeadProjections heads;
  heads.query = heads.key = {{1, 2, {1, 1}}, {}};
  heads.value = heads.query;
  heads.output = {{{65536, 1, std::vector<float>(65536, 1.0f)}, {}}};
  CreateModel("wide", {heads});
  v1::ContextualizeRequest request;
  const Matrix tokens = {65, 2, SplitMix(2).Floats(65 * 2)};
  AddTokens(tokens.view(), request.mutable_sequence());
  request.add_layers()->set_name("wide");
  request.set_temperature(1e-300);
  v1::ContextualizeResponse response;
  expect_too_large(Contextualize(request, &response));

  v1::BatchUpsertItemsRequest upsert;
  upsert.set_catalog("shop");
  v1::RankCandidatesRequest rank = Parse<v1::RankCandidatesRequest>(R"pb(
    catalog: "shop"
    model { name: "wide" }
    history {
      item_id: "a"
      time { seconds: 1 }
    }
    temperature: 1e-300
  )pb");
  for (int i = 0; i < 65; ++i) {
    v1::Item* item = upsert.add_items();
    item->set_id(absl::StrCat("i", i));
    auto* floats = (*item->mutable_keys())["k"].mutable_floats();
    floats->add_values(1);
    floats->add_values(2);
    rank.mutable_candidates()->mutable_items()->add_ids(item->id());
  }
  const grpc::Status status = Upsert(upsert);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::RankCandidatesResponse ranked;
  expect_too_large(Rank(rank, &ranked));
  rank.set_result_count(3);
  rank.clear_temperature();
  EXPECT_TRUE(Rank(rank, &ranked).ok());
}

TEST_F(SequenceServiceTest, WeightsCountInAReplyThatCannotFit) {
  MultiHeadProjections heads;
  heads.head_count = 32;
  heads.query = heads.key = {{32, 1, std::vector<float>(32, 1.0f)}, {}};
  heads.value = heads.query;
  heads.output = {{{1, 32, std::vector<float>(32, 1.0f)}, {}}};
  CreateModel("many", {heads});
  v1::ContextualizeRequest request;
  // 32 x 400 x 400 floats are 19.5 MiB.
  const Matrix tokens = {400, 1, SplitMix(2).Floats(400)};
  AddTokens(tokens.view(), request.mutable_sequence());
  request.add_layers()->set_name("many");
  request.set_include_weights(true);
  request.set_temperature(1e-300);
  v1::ContextualizeResponse response;
  const grpc::Status status = Contextualize(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              testing::HasSubstr("the reply would take more than 16777216"));
}

TEST_F(SequenceServiceTest, HiddenLayersAreLimitedAsMessagesAre) {
  MultiHeadProjections heads;
  heads.query = heads.key = {{1, 2, {1, 1}}, {}};
  heads.value = heads.query;
  heads.output = {{{65536, 1, std::vector<float>(65536, 1.0f)}, {}}};
  CreateModel("wide", {heads});
  heads.query = heads.key = {{1, 65536, std::vector<float>(65536, 1.0f)}, {}};
  heads.value = heads.query;
  heads.output.reset();
  CreateModel("narrow", {heads});
  v1::ContextualizeRequest request;
  const Matrix tokens = {65, 2, SplitMix(2).Floats(65 * 2)};
  AddTokens({tokens.data.data(), 64, 2}, request.mutable_sequence());
  request.add_layers()->set_name("wide");
  request.add_layers()->set_name("narrow");
  v1::ContextualizeResponse response;
  EXPECT_TRUE(Contextualize(request, &response).ok());
  request.clear_sequence();
  AddTokens(tokens.view(), request.mutable_sequence());
  Expect(Contextualize(request, &response),
         grpc::StatusCode::RESOURCE_EXHAUSTED, "layers[0]");
}

TEST_F(SequenceServiceTest, TokensAndWeightsAreLimited) {
  v1::ContextualizeRequest request;
  const Matrix tokens = {4097, 1, std::vector<float>(4097, .5f)};
  AddTokens({tokens.data.data(), 4096, 1}, request.mutable_sequence());
  v1::ContextualizeResponse response;
  EXPECT_TRUE(Contextualize(request, &response).ok());
  request.set_include_weights(true);
  Expect(Contextualize(request, &response),
         grpc::StatusCode::RESOURCE_EXHAUSTED, "include_weights");
  request.clear_sequence();
  AddTokens(tokens.view(), request.mutable_sequence());
  Expect(Contextualize(request, &response),
         grpc::StatusCode::RESOURCE_EXHAUSTED, "sequence.vectors.vectors");
  v1::ContextualizeRequest deep = Parse<v1::ContextualizeRequest>(
      "sequence { vectors { vectors { floats { values: 1 } } } }");
  for (int i = 0; i < 33; ++i) deep.add_layers()->set_name("m");
  Expect(Contextualize(deep, &response), grpc::StatusCode::RESOURCE_EXHAUSTED,
         "layers");
}

TEST_F(SequenceServiceTest, ApproximationsSayThatTheyAre) {
  const std::string tokens = R"pb(
    sequence {
      vectors {
        vectors { floats { values: [ 1, 0 ] } }
        vectors { floats { values: [ -1, 0 ] } }
        vectors { floats { values: [ 2, 0 ] } }
      }
    }
  )pb";
  const auto ask = [&](const std::string& approximation) {
    v1::ContextualizeResponse response;
    const grpc::Status status = Contextualize(
        Parse<v1::ContextualizeRequest>(absl::StrCat(tokens, approximation)),
        &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  EXPECT_EQ(ask("").method(), v1::ATTENTION_METHOD_EXACT);
  const auto lsh =
      ask("approximation { lsh { bucket_count: 2 round_count: 3 seed: 5 } }");
  EXPECT_EQ(lsh.method(), v1::ATTENTION_METHOD_APPROXIMATE);
  // Opposite tokens share no bucket.
  EXPECT_EQ(lsh.scored_count(), 5);
  EXPECT_THAT(lsh.outputs(1).floats().values(), ElementsAre(-1, 0));
  const auto linformer = ask("approximation { linformer { row_count: 1 } }");
  EXPECT_EQ(linformer.method(), v1::ATTENTION_METHOD_APPROXIMATE);
  EXPECT_EQ(linformer.scored_count(), 3);
  // The mean over all tokens.
  EXPECT_FLOAT_EQ(linformer.outputs(0).floats().values(0), 2.0f / 3);
  const auto random =
      ask("approximation { linformer { row_count: 1 reduction_kind: "
          "REDUCTION_KIND_RANDOM seed: 3 } }");
  EXPECT_NE(random.outputs(0).floats().values(0),
            linformer.outputs(0).floats().values(0));

  const auto refused = [&](const std::string& request,
                           const std::string& field) {
    ExpectRefused(absl::StrCat(tokens, request),
                  grpc::StatusCode::INVALID_ARGUMENT, field);
  };
  refused("approximation {}", "approximation");
  refused("approximation { lsh { bucket_count: 0 } }",
          "approximation.lsh.bucket_count");
  refused("approximation { lsh { bucket_count: 5 } }",
          "approximation.lsh.bucket_count");
  refused("approximation { lsh { round_count: 0 } }",
          "approximation.lsh.round_count");
  ExpectRefused(
      absl::StrCat(tokens, "approximation { lsh { round_count: 17 } }"),
      grpc::StatusCode::RESOURCE_EXHAUSTED, "approximation.lsh.round_count");
  refused("approximation { linformer { row_count: 0 } }",
          "approximation.linformer.row_count");
  refused("approximation { linformer { seed: 3 } }",
          "approximation.linformer.seed");
  refused("approximation { linformer { reduction_kind: 9 } }",
          "approximation.linformer.reduction_kind");
  refused("approximation { linformer {} } causal: true", "causal");
  refused("approximation { linformer {} } include_weights: true",
          "include_weights");
}

TEST_F(SequenceServiceTest, TheDeadlineStopsTheWork) {
  MultiHeadProjections heads;
  heads.query = heads.key = {{512, 64, SplitMix(1).Floats(512 * 64)}, {}};
  CreateModel("wide", {heads});
  v1::ContextualizeRequest request;
  const Matrix tokens = {4096, 64, SplitMix(2).Floats(4096 * 64)};
  AddTokens(tokens.view(), request.mutable_sequence());
  // 32 layers: more than ten seconds of work.
  for (int i = 0; i < 32; ++i) request.add_layers()->set_name("wide");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(100));
  v1::ContextualizeResponse response;
  EXPECT_EQ(
      sequence_stub_->Contextualize(&context, request, &response).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED);
  // The only worker, which was running it, is free again.
  const SteadyTime start = SteadyNow();
  server_->Shutdown(absl::Seconds(60));
  EXPECT_LT(TimeSince(start), absl::Seconds(10));
}

TEST_F(SequenceServiceTest, CandidatesAreRankedByTheHistory) {
  CreateShop();
  v1::RankCandidatesResponse response;
  const grpc::Status status =
      Rank(Parse<v1::RankCandidatesRequest>(R"pb(
             catalog: "shop"
             candidates { items { ids: [ "b", "a", "c" ] } }
             history {
               item_id: "a"
               time { seconds: 100 }
             }
             history {
               item_id: "gone"
               time { seconds: 101 }
             }
             history {
               item_id: "b"
               time { seconds: 200 }
             }
             profile { vector { floats { values: [ 3, 0 ] } } }
             time { seconds: 150 }
             result_count: 2
             attribution_count: 5
           )pb"),
           &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.candidates_size(), 2);
  // a and c attend with logits 1 and 3 to (1, 0) and (3, 0): equal scores.
  EXPECT_EQ(response.candidates(0).id(), "a");
  EXPECT_EQ(response.candidates(1).id(), "c");
  EXPECT_EQ(response.candidates(0).score(), response.candidates(1).score());
  const double weight = 1 / (1 + std::exp(-2.0));
  const double score = 3 * weight + (1 - weight);
  // Exponentials of logits 2 apart are off by (8 + 2) x 2^-24, in numerator and
  // denominator; three more roundings make a weight, or a sum of two.
  constexpr double kRelative = (2 * (8 + 2) + 3) * 0x1p-24;
  EXPECT_NEAR(response.candidates(0).score(), score, kRelative * score);
  EXPECT_THAT(response.candidates(0).interest(), SizeIs(2));
  ASSERT_EQ(response.candidates(0).events_size(), 2);
  EXPECT_TRUE(response.candidates(0).events(0).profile());
  EXPECT_EQ(response.candidates(0).events(0).index(), 0);
  EXPECT_NEAR(response.candidates(0).events(0).weight(), weight,
              kRelative * weight);
  EXPECT_FALSE(response.candidates(0).events(1).profile());
  EXPECT_EQ(response.candidates(0).events(1).index(), 0);
  EXPECT_EQ(response.future_event_count(), 1);
  EXPECT_THAT(response.unknown_item_ids(), ElementsAre("gone"));
  EXPECT_EQ(response.scored_count(), 6);
  EXPECT_NE(response.state_token(), "");
  EXPECT_TRUE(response.has_compute_duration());
}

TEST_F(SequenceServiceTest, ApproximateRanksSayThatTheyAre) {
  CreateShop();
  const auto ask = [&](const std::string& approximation) {
    v1::RankCandidatesResponse response;
    const grpc::Status status =
        Rank(Parse<v1::RankCandidatesRequest>(absl::StrCat(
                 R"pb(
                   catalog: "shop"
                   candidates { items { ids: [ "a" ] } }
                   profile { vector { floats { values: [ 1, 0 ] } } }
                   profile { vector { floats { values: [ 3, 0 ] } } }
                 )pb",
                 approximation)),
             &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  EXPECT_EQ(ask("").method(), v1::ATTENTION_METHOD_EXACT);
  const auto lsh = ask("approximation { lsh { bucket_count: 2 } }");
  EXPECT_EQ(lsh.method(), v1::ATTENTION_METHOD_APPROXIMATE);
  ASSERT_EQ(lsh.candidates_size(), 1);
  EXPECT_EQ(lsh.candidates(0).events_size(), 2);
  const auto linformer = ask("approximation { linformer { row_count: 1 } }");
  EXPECT_EQ(linformer.method(), v1::ATTENTION_METHOD_APPROXIMATE);
  ASSERT_EQ(linformer.candidates_size(), 1);
  EXPECT_THAT(linformer.candidates(0).interest(), ElementsAre(2, 0));
  EXPECT_EQ(linformer.candidates(0).events_size(), 0);
  ExpectRankRefused(R"pb(
                      catalog: "shop"
                      candidates { items { ids: [ "a" ] } }
                      profile { item_id: "b" }
                      approximation { linformer {} }
                      attribution_count: 1
                    )pb",
                    grpc::StatusCode::INVALID_ARGUMENT, "attribution_count");
}

TEST_F(SequenceServiceTest, AModelProjectsCandidatesAndHistory) {
  CreateShop();
  // Uses only the second component, and doubles the value.
  MultiHeadProjections heads;
  heads.query = heads.key = {{1, 2, {0, 1}}, {}};
  heads.value = {{{2, 2, {2, 0, 0, 2}}, {}}};
  CreateModel("second", {heads});
  v1::RankCandidatesResponse response;
  const grpc::Status status = Rank(Parse<v1::RankCandidatesRequest>(R"pb(
                                     catalog: "shop"
                                     candidates {
                                       query {
                                         vector { floats { values: [ 0, 1 ] } }
                                         candidate_count: 1
                                       }
                                     }
                                     history {
                                       item_id: "a"
                                       time { seconds: 1 }
                                     }
                                     history {
                                       vector { floats { values: [ 0, 30 ] } }
                                       time { seconds: 1 }
                                     }
                                     model { name: "second" }
                                   )pb"),
                                   &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.candidates_size(), 1);
  EXPECT_EQ(response.candidates(0).id(), "b");
  EXPECT_NEAR(response.candidates(0).interest(1), 60, 1e-4);
}

TEST_F(SequenceServiceTest, CandidatesByQueryAreMasked) {
  CreateShop();
  const auto ids = [&](const std::string& masks) {
    v1::RankCandidatesResponse response;
    const grpc::Status status = Rank(
        Parse<v1::RankCandidatesRequest>(absl::StrCat(
            "catalog: 'shop' candidates { query { vector { floats { values: "
            "[1, 1] } } ",
            masks, "} } history { item_id: 'c' time { seconds: 1 } }")),
        &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> found;
    for (const auto& candidate : response.candidates()) {
      found.push_back(candidate.id());
    }
    return found;
  };
  EXPECT_THAT(ids(""), ElementsAre("a", "b"));
  EXPECT_THAT(ids("exclude_events: true"), ElementsAre("a", "b"));
  EXPECT_THAT(ids("exclude_events: false"), ElementsAre("c", "a", "b"));
  EXPECT_THAT(ids("deny_list { ids: 'a' }"), ElementsAre("b"));
  EXPECT_THAT(ids("filter: 'price < 2'"), ElementsAre("a"));
  EXPECT_THAT(ids("filter_expression { negation { exists: 'name' } }"),
              ElementsAre("b"));
}

TEST_F(SequenceServiceTest, MasksOfCandidatesAreNamed) {
  CreateShop();
  constexpr grpc::StatusCode kInvalidRpc = grpc::StatusCode::INVALID_ARGUMENT;
  const auto refused = [&](const std::string& masks, grpc::StatusCode code,
                           const std::string& field) {
    ExpectRankRefused(
        absl::StrCat(
            "catalog: 'shop' candidates { query { vector { floats { values: "
            "[1, 1] } } ",
            masks, "} } history { item_id: 'c' time { seconds: 1 } }"),
        code, "candidates.query." + field);
  };
  refused("filter: 'price <'", kInvalidRpc, "filter");
  refused("filter: 'price < 2' filter_expression { exists: 'name' }",
          kInvalidRpc, "filter");
  refused("filter_expression { exists: 'none' }", kInvalidRpc,
          "filter_expression.exists");
  refused("filter_expression {}", kInvalidRpc, "filter_expression");
  refused("deny_list { ids: ['a', ''] }", kInvalidRpc, "deny_list.ids[1]");
  v1::RankCandidatesRequest many;
  v1::CandidateQuery& query = *many.mutable_candidates()->mutable_query();
  for (int i = 0; i <= 100000; ++i) query.mutable_deny_list()->add_ids("x");
  many.set_catalog("shop");
  v1::RankCandidatesResponse response;
  Expect(Rank(many, &response), grpc::StatusCode::RESOURCE_EXHAUSTED,
         "candidates.query.deny_list.ids");
}

TEST_F(SequenceServiceTest, RankErrorsNameTheirFields) {
  CreateShop();
  constexpr grpc::StatusCode kInvalidRpc = grpc::StatusCode::INVALID_ARGUMENT;
  constexpr grpc::StatusCode kNotFound = grpc::StatusCode::NOT_FOUND;
  const std::string base = "catalog: 'shop' candidates { items { ids: 'a' } } ";
  const std::string event = "history { item_id: 'a' time { seconds: 1 } } ";
  ExpectRankRefused("", kInvalidRpc, "catalog");
  ExpectRankRefused("catalog: 'none'", kNotFound, "");
  ExpectRankRefused("catalog: 'shop'", kInvalidRpc, "candidates");
  ExpectRankRefused(base, kInvalidRpc, "history");
  ExpectRankRefused(base + "history {}", kInvalidRpc, "history[0]");
  ExpectRankRefused(base + "history { item_id: 'a' }", kInvalidRpc,
                    "history[0].time");
  ExpectRankRefused(base + "history { item_id: 'a' time { nanos: -1 } }",
                    kInvalidRpc, "history[0].time.nanos");
  ExpectRankRefused(base + "profile { item_id: 'a' time { seconds: 1 } }",
                    kInvalidRpc, "profile[0].time");
  ExpectRankRefused(base + "profile { vector { floats { values: [1, inf] } } }",
                    kInvalidRpc, "profile[0].vector[1]");
  ExpectRankRefused(base + event + "profile { vector {} }", kInvalidRpc,
                    "profile[0].vector.encoding");
  ExpectRankRefused(base + event + "time { nanos: -1 }", kInvalidRpc,
                    "time.nanos");
  ExpectRankRefused(base + event + "activation_kind: 9", kInvalidRpc,
                    "activation_kind");
  ExpectRankRefused(base + event + "temperature: -1", kInvalidRpc,
                    "temperature");
  ExpectRankRefused(base + event + "result_count: 0", kInvalidRpc,
                    "result_count");
  ExpectRankRefused(base + event + "attribution_count: -1", kInvalidRpc,
                    "attribution_count");
  ExpectRankRefused(base + event + "model { name: 'none' }", kNotFound, "");
  ExpectRankRefused(base + event + "model {}", kInvalidRpc, "model.name");
  ExpectRankRefused(
      "catalog: 'shop' candidates { items { ids: 'x' } } " + event, kNotFound,
      "");
  ExpectRankRefused(base + event + "result_count: 4097",
                    grpc::StatusCode::RESOURCE_EXHAUSTED, "result_count");
  ExpectRankRefused(base + event + "attribution_count: 101",
                    grpc::StatusCode::RESOURCE_EXHAUSTED, "attribution_count");
}

}  // namespace
}  // namespace attendant
