// A catalog's model changes under its queries, and keys must stay within what
// either model can take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/time.h"
#include "core/base/fail_point.h"
#include "tests/core/catalog/query/heads_fixture.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

TEST_F(ModelHeadsTest, AnotherModelIsSwappedInWhileTheFirstAnswers) {
  Open(ScoreKind::kDot, 3000);
  const NamedModel next = Named(RandomMultiHeadModel(6), 2);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer before, Ask(Query()));
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  SetDefaults(fields, {next});
  // Each answer comes from one model as a whole.
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const AttendAnswer during, Ask(Query()));
    if (during.model == model_.name) {
      EXPECT_EQ(during.model_output, before.model_output);
    }
    // Rows written meanwhile are visible under both models.
    Upsert({MakeItem("late" + std::to_string(i), {0, 0, 0, 0},
                     {0, 0, 0, 0, 0, 0})});
  }
  catalog_->AwaitIndexes();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(Query()));
  EXPECT_EQ(after.model, next.name);
  EXPECT_EQ(after.eligible_count, 3020);
  EXPECT_EQ(catalog_->index_states()[0].active_model, next.name);
  EXPECT_FALSE(catalog_->index_states()[0].training);
  EXPECT_NE(after.model_output, before.model_output);

  // The result equals that of a catalog created with the new model.
  model_ = next;
  models_ = {next};
  schema_.key_fields[0].model = next.name;
  Restart();
  ASSERT_OK_AND_ASSIGN(const AttendAnswer fresh, Ask(Query()));
  for (std::size_t d = 0; d < 7; ++d) {
    EXPECT_NEAR(fresh.model_output[d], after.model_output[d], 1e-5);
  }
}

TEST_F(ModelHeadsTest, TheStoreKnowsAnotherModelBeforeItAnswers) {
  Open(ScoreKind::kDot, 100);
  const auto set_disk = [&](absl::Status status) {
    MutexLock lock(&disk_->mutex);
    disk_->write_status = std::move(status);
  };
  const auto stored = [&]() -> std::optional<ModelName> {
    MutexLock lock(&disk_->mutex);
    const auto found = disk_->active_models.find("vec");
    if (found == disk_->active_models.end()) return std::nullopt;
    return found->second;
  };
  const NamedModel next = Named(RandomMultiHeadModel(6), 2);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  const auto full =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("disk"));
  set_disk(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(catalog_->UpdateSchema(WithFields(fields), {next},
                                     []() -> absl::Status {
                                       ADD_FAILURE() << "stored";
                                       return absl::OkStatus();
                                     }),
              full);
  EXPECT_EQ(stored(), std::nullopt);
  set_disk(absl::OkStatus());
  {
    std::promise<void> go;
    background_.Add(
        nullptr, absl::ZeroDuration(),
        [gone = go.get_future().share()] { gone.wait(); }, Lane::kFirst);
    SetDefaults(fields, {next});
    EXPECT_EQ(stored(), model_.name);
    set_disk(absl::ResourceExhaustedError("the disk is full"));
    go.set_value();
  }
  catalog_->AwaitIndexes();
  EXPECT_THAT(catalog_->merge_status(), full);
  EXPECT_EQ(catalog_->index_states()[0].active_model, model_.name);
  EXPECT_EQ(stored(), model_.name);
  EXPECT_OK(Ask(Query()));
  set_disk(absl::OkStatus());
  Upsert({MakeItem("late", {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0})});
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->index_states()[0].active_model, next.name);
  EXPECT_EQ(stored(), next.name);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer after, Ask(Query()));
  EXPECT_EQ(after.eligible_count, 101);
}

// The new model may be deleted as soon as the catalog names the old one again.
TEST_F(ModelHeadsTest, AModelThatIsTakenBackWhileItsKeysAreMadeNeverAnswers) {
  Open(ScoreKind::kDot, 3000);
  const auto before = catalog_->snapshot();
  ASSERT_OK(ArmFailPoint("merge.before_publish=wait"));
  const absl::Cleanup go = [] { EXPECT_OK(ArmFailPoint("")); };
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = {"model", 2};
  SetDefaults(fields, {Named(RandomMultiHeadModel(6), 2)});
  while (WaitingAtFailPoints() == 0) std::this_thread::yield();
  SetDefaults(schema_.key_fields, {model_});
  ASSERT_OK(ArmFailPoint(""));
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  // The new model was not swapped in, and the old one's keys were not
  // recomputed.
  EXPECT_EQ(catalog_->index_states()[0].projected_key_count, 3000);
  const auto after = catalog_->snapshot();
  EXPECT_EQ(after->models[0].name, model_.name);
  ASSERT_EQ(after->segments.size(), before->segments.size());
  EXPECT_EQ(after->segments[0].segment, before->segments[0].segment);
  {
    MutexLock lock(&disk_->mutex);
    EXPECT_EQ(disk_->active_models.at("vec"), model_.name);
  }
  // New rows go to the same segments as before.
  Upsert({MakeItem("late", {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(catalog_->snapshot()->segments.size(), before->segments.size());
}

TEST_F(ModelHeadsTest, KeysThatTheModelWouldMakeInfiniteAreRefused) {
  Open(ScoreKind::kDot);
  const Item good = MakeItem("good", {1, 1, 1, 1}, {1, 1, 1, 1, 1, 1});
  const Item bad =
      MakeItem("bad", {3e38f, 3e38f, 3e38f, 3e38f}, {1, 1, 1, 1, 1, 1});
  EXPECT_THAT(catalog_->Upsert(std::vector<Item>{good, bad}, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items[1].keys[vec]: got a component too")));
  EXPECT_EQ(catalog_->snapshot()->item_count(), 40);
  ASSERT_OK_AND_ASSIGN(const ImportOutcome outcome,
                       catalog_->Import(std::vector<Item>{bad, good}));
  EXPECT_THAT(outcome.statuses[0],
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("keys[vec]: got a component too")));
  EXPECT_OK(outcome.statuses[1]);
  EXPECT_EQ(catalog_->snapshot()->item_count(), 41);
  ASSERT_OK(Ask(Query()));

  // The greatest key allowed is finite in every head.
  const float limit = catalog_->snapshot()->models[0].key_limit;
  Upsert(
      {MakeItem("great", {limit, -limit, limit, -limit}, {1, 1, 1, 1, 1, 1})});
  const auto snapshot = catalog_->snapshot();
  const RowAddress great = *snapshot->Find("great");
  for (int h = 0; h < 2; ++h) {
    for (const float component :
         snapshot->segments[great.segment].segment->IndexOf(0, h).Key(
             great.row)) {
      EXPECT_TRUE(std::isfinite(component));
    }
  }
  // A model that can't take the stored keys is refused, and the limit on writes
  // stays as it was.
  AttentionModel huge = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(huge.kind);
  for (float& weight : heads.key.weight.data) weight = 1e30f;
  const NamedModel next = Named(huge, 2);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  EXPECT_THAT(
      catalog_->UpdateSchema(WithFields(fields), {next},
                             [] { return absl::InternalError("stored"); }),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("key_fields[0].model")));
  Delete({"great"});
  Upsert(
      {MakeItem("great", {limit, -limit, limit, -limit}, {1, 1, 1, 1, 1, 1})});
  Delete({"great"});
  // The new model's limit applies to writes before its record is stored, and no
  // longer if storing fails.
  const std::vector<Item> greatest = {
      MakeItem("great", {limit, 0, 0, 0}, {1, 1, 1, 1, 1, 1})};
  EXPECT_THAT(catalog_->UpdateSchema(
                  WithFields(fields), {next},
                  [&]() -> absl::Status {
                    EXPECT_THAT(catalog_->Upsert(greatest, ""),
                                StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("keys[vec]")));
                    return absl::ResourceExhaustedError("disk");
                  }),
              StatusIs(absl::StatusCode::kResourceExhausted, "disk"));
  EXPECT_EQ(catalog_->snapshot()->models[0].name, model_.name);
  EXPECT_OK(catalog_->Upsert(greatest, ""));
}

// A COSINE index has only normalised keys, whose norms are 1.
TEST_F(ModelHeadsTest, TheIndexOfNormalisedKeysHidesNoGreatOnes) {
  CatalogSchema schema = OneFieldSchema(4, ScoreKind::kCosine);
  schema.value_dim = 6;
  options_.auto_ivf_min_count = 1000;
  OpenCatalog(schema, options_);
  std::vector<Item> items = ItemsForModel(2000);
  items[7].keys[0] = {2e37f, 0, 0, 0};
  Upsert(items);
  catalog_->AwaitIndexes();
  ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
  AttentionModel large = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(large.kind);
  for (float& weight : heads.key.weight.data) weight *= 100;
  const NamedModel next = Named(large);
  std::vector<KeyFieldSchema> fields = schema_.key_fields;
  fields[0].model = next.name;
  EXPECT_THAT(
      catalog_->UpdateSchema(WithFields(fields), {next},
                             [] { return absl::InternalError("stored"); }),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the key of item 'item7'")));
  Delete({"item7"});
  SetDefaults(fields, {next});
  catalog_->AwaitIndexes();
  EXPECT_OK(Ask(Query()));
}

TEST_F(ModelHeadsTest, AModelOutOfUseLimitsNoKeys) {
  Open(ScoreKind::kDot);
  const float limit = catalog_->snapshot()->models[0].key_limit;
  AttentionModel huge = RandomMultiHeadModel(5);
  auto& heads = std::get<MultiHeadProjections>(huge.kind);
  for (float& weight : heads.key.weight.data) weight = 1e30f;
  const NamedModel other = Named(huge, 2);
  const std::vector<Item> great = {
      MakeItem("great", {limit, 0, 0, 0}, {1, 1, 1, 1, 1, 1})};
  for (const NamedModel& model : {other, model_}) {
    std::vector<KeyFieldSchema> fields = schema_.key_fields;
    fields[0].model = model.name;
    ASSERT_OK(catalog_->UpdateSchema(WithFields(fields), {model}, [&] {
      EXPECT_FALSE(catalog_->Upsert(great, "").ok());
      return absl::OkStatus();
    }));
    catalog_->AwaitIndexes();
    ASSERT_EQ(catalog_->snapshot()->models[0].name, model.name);
  }
  EXPECT_OK(catalog_->Upsert(great, ""));
}

}  // namespace
}  // namespace attendant
