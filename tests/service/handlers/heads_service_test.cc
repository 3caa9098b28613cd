// Multi-head attention over gRPC: parity with PyTorch, and models in use.
#include <cmath>
#include <map>
#include <string>

#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "service/convert/time.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/random_model.h"
#include "tests/support/torch_cases.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string KeyName(std::int64_t position) {
  return "key" + std::to_string(position);
}

// Stores one sequence of a batch as a catalog, and asks with each of its
// queries.
class TorchParityTest : public ServerFixture {
 protected:
  void CheckSequence(const TorchCase& torch, const std::string& catalog,
                     std::int64_t b) {
    const MatrixView keys = torch.keys_of(b);
    const MatrixView values = torch.values_of(b);
    v1::CreateCatalogRequest create;
    create.set_name(catalog);
    v1::KeyField* field = create.mutable_schema()->add_key_fields();
    field->set_name("k");
    field->set_dimension(static_cast<std::int32_t>(keys.dim));
    field->set_score_kind(v1::SCORE_KIND_SCALED_DOT);
    field->mutable_model()->set_name(catalog.substr(0, catalog.find('_')));
    create.mutable_schema()->set_value_dimension(
        static_cast<std::int32_t>(values.dim));
    const grpc::Status created = Create(create);
    ASSERT_TRUE(created.ok()) << created.error_message();
    for (std::int64_t begin = 0; begin < torch.key_count; begin += 256) {
      v1::BatchUpsertItemsRequest upsert;
      upsert.set_catalog(catalog);
      for (std::int64_t i = begin; i < std::min(torch.key_count, begin + 256);
           ++i) {
        v1::Item* item = upsert.add_items();
        item->set_id(KeyName(i));
        SetVector(keys.Row(i), &(*item->mutable_keys())["k"]);
        SetVector(values.Row(i), item->mutable_value());
      }
      ASSERT_TRUE(Upsert(upsert).ok());
    }
    for (std::int64_t q = 0; q < torch.query_count; ++q) {
      CheckQuery(torch, catalog, b, q);
    }
  }

  void CheckQuery(const TorchCase& torch, const std::string& catalog,
                  std::int64_t b, std::int64_t q) {
    v1::AttendRequest request;
    request.set_catalog(catalog);
    SetVector(torch.queries_of(b).Row(q),
              request.mutable_query()->mutable_vector());
    request.set_result_count(static_cast<std::int32_t>(torch.key_count));
    request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
    request.set_include_head_weights(true);
    // true in a PyTorch key padding mask means "may not attend".
    for (std::int64_t i = 0; i < torch.key_count; ++i) {
      const auto masked = [i](const std::vector<std::uint8_t>& mask,
                              std::int64_t row, std::int64_t row_size) {
        return !mask.empty() && mask[row * row_size + i] != 0;
      };
      if (masked(torch.attn_mask, q, torch.key_count) ||
          masked(torch.key_padding_mask, b, torch.key_count)) {
        request.mutable_deny_list()->add_ids(KeyName(i));
      }
    }
    const v1::AttendResponse answer = Answer(request);
    const std::int64_t dim = torch.heads.query.input_dim();
    ASSERT_EQ(answer.model_output_size(), dim);
    for (std::int64_t d = 0; d < dim; ++d) {
      const auto at =
          static_cast<std::size_t>((b * torch.query_count + q) * dim + d);
      EXPECT_NEAR(answer.model_output(static_cast<int>(d)), torch.out[at],
                  1e-5);
    }
    std::map<std::string, const v1::AttendedItem*> items;
    for (const v1::AttendedItem& item : answer.items())
      items[item.id()] = &item;
    for (std::int64_t h = 0; h < torch.heads.head_count; ++h) {
      for (std::int64_t i = 0; i < torch.key_count; ++i) {
        const auto at = static_cast<std::size_t>(
            ((b * torch.heads.head_count + h) * torch.query_count + q) *
                torch.key_count +
            i);
        const auto found = items.find(KeyName(i));
        const double weight =
            found == items.end()
                ? 0
                : found->second->head_weights(static_cast<int>(h));
        EXPECT_NEAR(weight, torch.weights[at], 1e-5);
        if (found == items.end()) {
          EXPECT_EQ(torch.weights[at], 0);
        }
      }
    }
  }
};

TEST_F(TorchParityTest, AttendEqualsMultiheadAttention) {
  const std::vector<TorchCase> cases = LoadTorchCases();
  ASSERT_THAT(cases, SizeIs(27));
  for (std::size_t c = 0; c < cases.size(); ++c) {
    SCOPED_TRACE(cases[c].name);
    const std::string model = "case" + std::to_string(c);
    CreateModel(model, {cases[c].heads});
    for (std::int64_t b = 0; b < cases[c].batch_size; ++b) {
      CheckSequence(cases[c], model + "_" + std::to_string(b), b);
    }
  }
}

class ModelInUseTest : public ServerFixture {
 protected:
  // Creates items with keys of 4 and values of 6 components, as
  // RandomMultiHeadModel requires.
  void CreateCatalog() {
    ASSERT_EQ(CreateModel("heads", RandomMultiHeadModel(1)), 1);
    ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                           "name: 'shop' schema { value_dimension: 6 "
                           "key_fields { name: 'k' dimension: 4 "
                           "model { name: 'heads' } } }"))
                    .ok());
    RandomFloats random(2);
    v1::BatchUpsertItemsRequest upsert;
    upsert.set_catalog("shop");
    for (int i = 0; i < 20; ++i) {
      v1::Item* item = upsert.add_items();
      item->set_id(KeyName(i));
      SetVector(random.Vector(4), &(*item->mutable_keys())["k"]);
      SetVector(random.Vector(6), item->mutable_value());
    }
    ASSERT_TRUE(Upsert(upsert).ok());
  }

  static v1::AttendRequest Request() {
    return Parse<v1::AttendRequest>(
        "catalog: 'shop' query { vector { floats { values: [1, 2, 3, 4, 5] } "
        "} }");
  }
};

TEST_F(ModelInUseTest, AnswerNamesTheModelAndItsHeads) {
  CreateCatalog();
  const v1::AttendResponse answer = Answer(Request());
  EXPECT_EQ(answer.model().name(), "heads");
  EXPECT_EQ(answer.model().version(), 1);
  EXPECT_EQ(answer.heads_size(), 2);
  EXPECT_EQ(answer.heads(0).key_field(), "k");
  EXPECT_EQ(answer.heads(0).output_size(), 2);
  EXPECT_EQ(answer.model_output_size(), 7);
  EXPECT_FALSE(answer.has_log_partition());
  EXPECT_TRUE(answer.heads(1).has_log_partition());
  EXPECT_EQ(answer.items(0).head_weights_size(), 0);
  EXPECT_TRUE(answer.items(0).has_head());
}

TEST_F(ModelInUseTest, CatalogSwitchesToAnotherVersion) {
  CreateCatalog();
  ASSERT_EQ(CreateModel("heads", RandomMultiHeadModel(9)), 2);
  // A new version alone has no effect.
  EXPECT_EQ(Answer(Request()).model().version(), 1);
  v1::UpdateCatalogResponse updated;
  const grpc::Status status = UpdateCatalog(
      Parse<v1::UpdateCatalogRequest>(
          "name: 'shop' key_fields { name: 'k' model { name: 'heads' } } "
          "update_mask { paths: 'model' }"),
      &updated);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(updated.catalog().schema().key_fields(0).model().version(), 2);
  const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
  while (Answer(Request()).model().version() != 2 && SteadyNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(Answer(Request()).model().version(), 2);
  EXPECT_TRUE(DeleteModel("heads", 1).ok());
  const grpc::Status in_use = DeleteModel("heads", 2);
  EXPECT_EQ(in_use.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(DetailsOf(in_use)), "MODEL_IN_USE");
}

TEST_F(ModelInUseTest, ModelThatDoesNotFitIsRefused) {
  CreateModel("heads", RandomMultiHeadModel(1));
  CreateModel("form", RandomBilinearModel(1));
  const auto refused = [&](const std::string& field, const std::string& message,
                           grpc::StatusCode code) {
    const grpc::Status status = Create(Parse<v1::CreateCatalogRequest>(
        "name: 'other' schema { value_dimension: 6 key_fields { name: 'k' " +
        field + " } }"));
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  };
  const auto kInvalidRpc = grpc::StatusCode::INVALID_ARGUMENT;
  refused("dimension: 5 model { name: 'heads' }", "schema.key_fields[0].model",
          kInvalidRpc);
  refused("dimension: 5 model { name: 'form' }", "multi-head", kInvalidRpc);
  refused("dimension: 5 score_kind: SCORE_KIND_BILINEAR",
          "schema.key_fields[0].model", kInvalidRpc);
  refused(
      "dimension: 4 score_kind: SCORE_KIND_ADDITIVE model { name: 'heads' "
      "}",
      "an additive model", kInvalidRpc);
  refused("dimension: 4 model { name: 'nothing' }", "nothing",
          grpc::StatusCode::NOT_FOUND);
  refused("dimension: 4 model { name: 'heads' version: 7 }", "heads",
          grpc::StatusCode::NOT_FOUND);
  refused("dimension: 4 model { name: 'heads' version: 0 }", "version",
          kInvalidRpc);
  refused("dimension: 4 model { version: 1 }", "model.name", kInvalidRpc);
}

TEST_F(ModelInUseTest, ModelsAreThereAfterARestart) {
  CreateCatalog();
  const v1::AttendResponse before = Answer(Request());
  TearDown();
  SetUp();
  const v1::AttendResponse after = Answer(Request());
  EXPECT_EQ(after.model().version(), 1);
  ASSERT_EQ(after.items_size(), before.items_size());
  for (int i = 0; i < after.items_size(); ++i) {
    EXPECT_EQ(after.items(i).id(), before.items(i).id());
    // Rows are in another order, so sums round differently.
    EXPECT_NEAR(after.items(i).weight(), before.items(i).weight(), 1e-12);
  }
}

TEST_F(ModelInUseTest, ChoicesOfAnAnswerTravel) {
  ASSERT_TRUE(
      Create(Parse<v1::CreateCatalogRequest>(
                 "name: 'logs' schema { key_fields { name: 'k' dimension: 1 } "
                 "key_fields { name: 'other' dimension: 1 } attributes { "
                 "name: 'popularity' type: ATTRIBUTE_TYPE_DOUBLE } attributes "
                 "{ name: 'added' type: ATTRIBUTE_TYPE_TIMESTAMP } }"))
          .ok());
  v1::BatchUpsertItemsRequest upsert;
  upsert.set_catalog("logs");
  for (int i = 0; i < 4; ++i) {
    v1::Item* item = upsert.add_items();
    item->set_id(KeyName(i));
    const float logit = static_cast<float>(std::log(i + 1.0));
    SetVector({&logit, 1}, &(*item->mutable_keys())["k"]);
    SetVector({&logit, 1}, &(*item->mutable_keys())["other"]);
    (*item->mutable_attributes())["popularity"].set_double_value(i);
    (*item->mutable_attributes())["added"]
        .mutable_timestamp_value()
        ->set_seconds(1000 * i);
  }
  ASSERT_TRUE(Upsert(upsert).ok());
  const std::string query =
      "catalog: 'logs' query { vector { floats { values: [1] } } } ";

  v1::AttendResponse answer =
      Answer(Parse<v1::AttendRequest>(query + "min_mass: 0.65"));
  EXPECT_EQ(answer.items_size(), 2);
  EXPECT_EQ(answer.limit_reason(), v1::LIMIT_REASON_UNSPECIFIED);
  answer = Answer(
      Parse<v1::AttendRequest>(query + "min_mass: 0.65 result_count: 1"));
  EXPECT_EQ(answer.limit_reason(), v1::LIMIT_REASON_RESULT_CAP);

  answer = Answer(Parse<v1::AttendRequest>(
      query + "select_kind: SELECT_KIND_SAMPLE seed: 5 result_count: 2"));
  ASSERT_EQ(answer.items_size(), 2);
  EXPECT_EQ(answer.slate().seed(), 5);
  EXPECT_TRUE(answer.slate().has_kappa());
  EXPECT_EQ(answer.slate().sequence(), 1);
  EXPECT_EQ(answer.slate().scope(), v1::WEIGHT_SCOPE_CATALOG);
  EXPECT_NEAR(answer.items(0).log_weight() + answer.items(1).log_weight(),
              answer.slate().log_probability(), 1e-9);
  EXPECT_TRUE(answer.items(1).has_log_inclusion_given_threshold());

  answer = Answer(Parse<v1::AttendRequest>(
      query + "activation_kind: ACTIVATION_KIND_NONE"));
  EXPECT_EQ(answer.activation_kind(), v1::ACTIVATION_KIND_NONE);
  EXPECT_NEAR(answer.items(0).weight(), std::log(4.0), 1e-6);
  EXPECT_EQ(answer.returned_mass().method(), v1::MASS_METHOD_UNKNOWN);
  EXPECT_EQ(answer.weight_scope(), v1::WEIGHT_SCOPE_UNSPECIFIED);

  answer =
      Answer(Parse<v1::AttendRequest>(
          query + "biases { attribute: 'popularity' factor: -5 } biases { "
                  "attribute: 'added' half_life { seconds: 1000 } } "
                  "time { seconds: 3000 }"));
  EXPECT_EQ(answer.items(0).id(), KeyName(0));
  EXPECT_EQ(answer.time().seconds(), 3000);
  // log 1 - 0 - ln 2 x 3.
  EXPECT_NEAR(answer.items(0).logit(), -3 * std::log(2.0), 1e-6);

  answer = Answer(Parse<v1::AttendRequest>(
      "catalog: 'logs' heads { key_field: 'k' query { vector { floats { "
      "values: [1] } } } } heads { key_field: 'other' temperature: 2 query { "
      "vector { floats { values: [-3] } } } } include_head_weights: true"));
  ASSERT_EQ(answer.heads_size(), 2);
  EXPECT_EQ(answer.heads(1).temperature(), 2);
  // Properties common to all heads are not reported for the answer.
  EXPECT_FALSE(answer.has_temperature());
  EXPECT_EQ(answer.key_field(), "");
  EXPECT_EQ(answer.score_kind(), v1::SCORE_KIND_DOT);
  EXPECT_EQ(answer.items(0).id(), KeyName(0));
  EXPECT_EQ(answer.items(0).head(), 1);
  EXPECT_EQ(answer.items(0).key_field(), "other");
  EXPECT_EQ(answer.items(0).head_weights_size(), 2);

  // One named head is reported like several.
  const std::string one_vector = "{ vector { floats { values: [1] } } } ";
  answer = Answer(Parse<v1::AttendRequest>(absl::StrCat(
      "catalog: 'logs' heads { key_field: 'k' temperature: 2 query ",
      one_vector, "}")));
  ASSERT_EQ(answer.heads_size(), 1);
  EXPECT_EQ(answer.heads(0).temperature(), 2);
  EXPECT_EQ(answer.temperature(), 2);
  EXPECT_EQ(answer.key_field(), "k");
  EXPECT_TRUE(answer.items(0).has_head());
  EXPECT_EQ(answer.items(0).key_field(), "k");
  answer = Answer(Parse<v1::AttendRequest>(
      absl::StrCat("catalog: 'logs' key_field: 'k' query ", one_vector)));
  EXPECT_EQ(answer.heads_size(), 0);
  EXPECT_FALSE(answer.items(0).has_head());

  // A head without a query uses the request's, which is missing.
  const grpc::Status missing = Attend(
      Parse<v1::AttendRequest>("catalog: 'logs' heads { key_field: 'k' }"));
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(missing.error_message(), HasSubstr("query"));
}

// The weights of young items change within parts of a microsecond.
TEST_F(ModelInUseTest, ATimeThatIsEchoedReplaysADecay) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'news' schema { key_fields { name: 'k' "
                         "dimension: 1 } attributes { name: 'added' type: "
                         "ATTRIBUTE_TYPE_TIMESTAMP } }"))
                  .ok());
  auto upsert = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'news' items { id: 'x' keys { key: 'k' value { floats { "
      "values: [1] } } } }");
  TimeToProto(absl::Now(),
              (*upsert.mutable_items(0)->mutable_attributes())["added"]
                  .mutable_timestamp_value());
  ASSERT_TRUE(Upsert(upsert).ok());
  auto request = Parse<v1::AttendRequest>(
      "catalog: 'news' query { vector { floats { values: [1] } } } biases { "
      "attribute: 'added' half_life { nanos: 100000 } }");
  for (int i = 0; i < 10; ++i) {
    request.clear_time();
    const v1::AttendResponse answer = Answer(request);
    *request.mutable_time() = answer.time();
    EXPECT_EQ(Answer(request).items(0).logit(), answer.items(0).logit());
  }
}

}  // namespace
}  // namespace attendant
