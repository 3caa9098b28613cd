// Models end to end: what is stored is returned, and errors name fields.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "service/convert/model.h"
#include "service/handlers/handlers.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/random_model.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ModelServiceTest : public ServerFixture {
 protected:
  grpc::Status Create(const v1::CreateModelRequest& request,
                      v1::CreateModelResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::CreateModelResponse ignored;
    return model_stub_->CreateModel(&context, request,
                                    response != nullptr ? response : &ignored);
  }
  grpc::Status Get(const v1::GetModelRequest& request,
                   v1::GetModelResponse* response) {
    grpc::ClientContext context;
    return model_stub_->GetModel(&context, request, response);
  }
  grpc::Status List(const v1::ListModelsRequest& request,
                    v1::ListModelsResponse* response) {
    grpc::ClientContext context;
    return model_stub_->ListModels(&context, request, response);
  }
  static v1::CreateModelRequest RequestOf(const AttentionModel& model,
                                          const std::string& name = "text") {
    ModelVersion version;
    version.model = model;
    v1::CreateModelRequest request;
    ModelToProto(version, request.mutable_model());
    request.mutable_model()->set_name(name);
    return request;
  }
  void CreateVersions(const std::string& name, int count) {
    for (int i = 0; i < count; ++i) {
      CreateModel(name, RandomBilinearModel(i));
    }
  }

  void ExpectError(const grpc::Status& status, grpc::StatusCode code,
                   const std::string& field) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_EQ(FieldIn(DetailsOf(status)), field) << status.error_message();
    EXPECT_THAT(status.error_message(), StartsWith(field));
  }
  void ExpectInvalid(const grpc::Status& status, const std::string& field) {
    ExpectError(status, grpc::StatusCode::INVALID_ARGUMENT, field);
    EXPECT_THAT(status.error_message(), HasSubstr("got "));
    EXPECT_THAT(status.error_message(), HasSubstr("want "));
  }
};

TEST_F(ModelServiceTest, WeightsComeBackAsTheyWentIn) {
  for (const AttentionModel& model :
       {RandomMultiHeadModel(1), RandomBilinearModel(2),
        RandomAdditiveModel(3)}) {
    v1::CreateModelResponse created;
    ASSERT_TRUE(Create(RequestOf(model), &created).ok());
    v1::GetModelRequest request;
    request.mutable_model()->set_name("text");
    request.set_include_weights(true);
    v1::GetModelResponse got;
    ASSERT_TRUE(Get(request, &got).ok());
    EXPECT_EQ(got.summary().DebugString(), created.model().DebugString());
    EXPECT_EQ(got.model().version(), created.model().version());
    EXPECT_EQ(got.model().create_time().seconds(),
              created.model().create_time().seconds());
    ASSERT_OK_AND_ASSIGN(const AttentionModel decoded,
                         ModelFromProto(got.model()));
    EXPECT_EQ(decoded, model);
  }
}

TEST_F(ModelServiceTest, SummaryTellsShapesWithoutWeights) {
  ASSERT_TRUE(Create(RequestOf(RandomMultiHeadModel(1))).ok());
  v1::GetModelRequest request;
  request.mutable_model()->set_name("text");
  request.mutable_model()->set_version(1);
  v1::GetModelResponse got;
  ASSERT_TRUE(Get(request, &got).ok());
  EXPECT_FALSE(got.has_model());
  const v1::ModelSummary& summary = got.summary();
  EXPECT_EQ(summary.name(), "text");
  EXPECT_EQ(summary.version(), 1);
  EXPECT_EQ(summary.model_kind(), v1::MODEL_KIND_MULTI_HEAD);
  EXPECT_EQ(summary.query_dimension(), 5);
  EXPECT_EQ(summary.key_dimension(), 4);
  EXPECT_EQ(summary.value_dimension(), 6);
  EXPECT_EQ(summary.output_dimension(), 7);
  EXPECT_EQ(summary.head_count(), 2);
  EXPECT_EQ(summary.head_key_dimension(), 3);
  EXPECT_EQ(summary.head_value_dimension(), 2);
  EXPECT_EQ(summary.memory_bytes(),
            4 * (6 * 5 + 6 + 6 * 4 + 6 + 4 * 6 + 4 + 7 * 4 + 7));
  EXPECT_FALSE(summary.has_asymmetry());
  EXPECT_GT(summary.create_time().seconds(), 1600000000);
}

TEST_F(ModelServiceTest, SummaryOfTheOtherKinds) {
  v1::CreateModelResponse created;
  ASSERT_TRUE(
      Create(RequestOf({BilinearForm{{2, 2, {0, 1, 0, 0}}}}), &created).ok());
  EXPECT_EQ(created.model().model_kind(), v1::MODEL_KIND_BILINEAR);
  EXPECT_DOUBLE_EQ(created.model().asymmetry(), std::sqrt(2.0));
  EXPECT_EQ(created.model().head_count(), 1);
  EXPECT_EQ(created.model().head_key_dimension(), 0);
  EXPECT_EQ(created.model().memory_bytes(), 16);
  ASSERT_TRUE(Create(RequestOf(RandomAdditiveModel(1)), &created).ok());
  EXPECT_EQ(created.model().model_kind(), v1::MODEL_KIND_ADDITIVE);
  EXPECT_EQ(created.model().memory_bytes(), 4 * (4 * 3 + 4 * 5 + 4));
  // Without W_V and W_O values pass unchanged, head after head.
  AttentionModel plain = RandomMultiHeadModel(1);
  auto& heads = std::get<MultiHeadProjections>(plain.kind);
  heads.value.reset();
  heads.output.reset();
  ASSERT_TRUE(Create(RequestOf(plain), &created).ok());
  EXPECT_EQ(created.model().value_dimension(), 0);
  EXPECT_EQ(created.model().output_dimension(), 0);
  EXPECT_EQ(created.model().head_value_dimension(), 0);
}

TEST_F(ModelServiceTest, TiedProjectionsHaveAsymmetryZero) {
  RandomFloats random(1);
  MultiHeadProjections heads;
  heads.query = random.Projection(2, 3);
  heads.key = heads.query;
  v1::CreateModelResponse created;
  ASSERT_TRUE(Create(RequestOf({heads}), &created).ok());
  ASSERT_TRUE(created.model().has_asymmetry());
  EXPECT_EQ(created.model().asymmetry(), 0);
}

TEST_F(ModelServiceTest, PagesFollowNameAndVersion) {
  CreateVersions("b", 11);
  CreateVersions("a", 1);
  v1::ListModelsRequest request;
  request.set_page_size(3);
  std::vector<std::string> names;
  int pages = 0;
  do {
    v1::ListModelsResponse page;
    ASSERT_TRUE(List(request, &page).ok());
    for (const v1::ModelSummary& model : page.models()) {
      names.push_back(absl::StrCat(model.name(), model.version()));
    }
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("a1", "b1", "b2", "b3", "b4", "b5", "b6", "b7",
                                 "b8", "b9", "b10", "b11"));
  EXPECT_EQ(pages, 4);
}

TEST_F(ModelServiceTest, ListingErrorsNameTheirFields) {
  v1::ListModelsRequest request;
  v1::ListModelsResponse response;
  request.set_page_size(-1);
  ExpectInvalid(List(request, &response), "page_size");
  request.set_page_size(0);
  request.set_page_token("nonsense");
  ExpectInvalid(List(request, &response), "page_token");
  // The page token of a listing of catalogs.
  CreateShop();
  ASSERT_TRUE(CreateEmpty("second").ok());
  v1::ListCatalogsRequest catalogs;
  catalogs.set_page_size(1);
  v1::ListCatalogsResponse listed;
  grpc::ClientContext context;
  ASSERT_TRUE(catalog_stub_->ListCatalogs(&context, catalogs, &listed).ok());
  ASSERT_NE(listed.next_page_token(), "");
  request.set_page_token(listed.next_page_token());
  ExpectInvalid(List(request, &response), "page_token");
}

// As in a listing of catalogs, with those that cannot be opened.
TEST(ModelListingTest, DamagedVersionsAreListedApart) {
  ScratchDirectory directory;
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory.path()));
    ModelRecord record;
    record.name = {"text", 1};
    record.model = RandomBilinearModel(1);
    ASSERT_OK(store->PutModel(record));
    // Stored correctly, but not a valid model.
    record.name.version = 2;
    std::get<BilinearForm>(record.model.kind).weight.row_count = 0;
    ASSERT_OK(store->PutModel(record));
  }
  ASSERT_OK_AND_ASSIGN(const auto catalogs,
                       CatalogSet::Open(directory.path(), {}));
  Backend backend(catalogs.get(), 1 << 20);
  v1::ListModelsResponse listed;
  ASSERT_OK(ListModels(backend, {}, Interrupt(), &listed));
  ASSERT_EQ(listed.models_size(), 1);
  EXPECT_EQ(listed.models(0).version(), 1);
  ASSERT_EQ(listed.damaged_models_size(), 1);
  EXPECT_EQ(listed.damaged_models(0).name(), "text");
  EXPECT_EQ(listed.damaged_models(0).version(), 2);
  EXPECT_THAT(listed.damaged_models(0).message(), HasSubstr("is damaged"));
  v1::GetModelRequest request;
  request.mutable_model()->set_name("text");
  v1::GetModelResponse got;
  EXPECT_THAT(GetModel(backend, request, Interrupt(), &got),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("version 2 of model \"text\"")));
}

TEST_F(ModelServiceTest, DeletedVersionsStayUsedUp) {
  CreateVersions("text", 2);
  ASSERT_TRUE(DeleteModel("text", 2).ok());
  EXPECT_EQ(DeleteModel("text", 2).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::CreateModelResponse created;
  ASSERT_TRUE(Create(RequestOf(RandomBilinearModel(1)), &created).ok());
  EXPECT_EQ(created.model().version(), 3);
}

TEST_F(ModelServiceTest, AModelInUseStays) {
  CreateVersions("form", 2);
  v1::CreateCatalogRequest request;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        name: "shop"
        schema {
          key_fields {
            name: "k"
            dimension: 5
            score_kind: SCORE_KIND_BILINEAR
            model { name: "form" }
          }
        }
      )pb",
      &request));
  ASSERT_TRUE(ServerFixture::Create(request).ok());
  // The catalog took the version that was newest then, and keeps it when it is
  // created again.
  CreateVersions("form", 1);
  v1::CreateCatalogResponse again;
  ASSERT_TRUE(ServerFixture::Create(request, &again).ok());
  EXPECT_FALSE(again.created());
  EXPECT_EQ(again.catalog().schema().key_fields(0).model().version(), 2);
  const grpc::Status status = DeleteModel("form", 2);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "MODEL_IN_USE");
  EXPECT_THAT(status.error_message(),
              HasSubstr("catalog 'shop' uses version 2 of model 'form'"));
  EXPECT_TRUE(DeleteModel("form", 1).ok());
  EXPECT_TRUE(DeleteModel("form", 3).ok());
  ASSERT_TRUE(DeleteCatalog("shop").ok());
  EXPECT_TRUE(DeleteModel("form", 2).ok());
}

TEST_F(ModelServiceTest, MissingModelsAreNotFoundByName) {
  CreateVersions("text", 1);
  v1::GetModelRequest request;
  v1::GetModelResponse response;
  request.mutable_model()->set_name("image");
  grpc::Status status = Get(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no model 'image'"));
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "MODEL_NOT_FOUND");
  EXPECT_EQ(MetadataIn(status, "model"), "image");
  request.mutable_model()->set_name("text");
  request.mutable_model()->set_version(2);
  status = Get(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(),
              HasSubstr("no version 2 of model 'text'"));
}

TEST_F(ModelServiceTest, ReferencesMustNameAModel) {
  v1::GetModelRequest request;
  v1::GetModelResponse response;
  ExpectInvalid(Get(request, &response), "model.name");
  request.mutable_model()->set_name("text");
  for (const std::int64_t version : {0, -1}) {
    request.mutable_model()->set_version(version);
    ExpectInvalid(Get(request, &response), "model.version");
    ExpectInvalid(DeleteModel("text", version), "version");
  }
  ExpectInvalid(DeleteModel("", 1), "name");
}

TEST_F(ModelServiceTest, CreationErrorsNameTheirFields) {
  struct Fault {
    std::string field;
    std::function<void(v1::AttentionModel&)> spoil;
  };
  const auto expect = [&](const AttentionModel& model,
                          const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) {
      v1::CreateModelRequest request = RequestOf(model);
      fault.spoil(*request.mutable_model());
      ExpectInvalid(Create(request), "model." + fault.field);
    }
  };
  const auto heads = [](v1::AttentionModel& model) {
    return model.mutable_multi_head();
  };
  expect(
      RandomMultiHeadModel(1),
      {{"name", [](auto& model) { model.clear_name(); }},
       {"name", [](auto& model) { model.set_name("Text"); }},
       {"kind", [](auto& model) { model.clear_kind(); }},
       {"multi_head.head_count",
        [&](auto& model) { heads(model)->clear_head_count(); }},
       {"multi_head.query", [&](auto& model) { heads(model)->clear_query(); }},
       {"multi_head.key", [&](auto& model) { heads(model)->clear_key(); }},
       {"multi_head.value.weight",
        [&](auto& model) { heads(model)->mutable_value()->clear_weight(); }},
       {"multi_head.output.weight.float32_le",
        [&](auto& model) {
          heads(model)->mutable_output()->mutable_weight()->set_float32_le("x");
        }},
       {"multi_head.query.weight.row_count",
        [&](auto& model) {
          heads(model)->mutable_query()->mutable_weight()->clear_row_count();
        }},
       {"multi_head.key.weight.column_count",
        [&](auto& model) {
          heads(model)->mutable_key()->mutable_weight()->set_column_count(-4);
        }},
       {"multi_head.key.bias.encoding",
        [&](auto& model) {
          heads(model)->mutable_key()->mutable_bias()->Clear();
        }},
       {"multi_head.key.bias[1]", [&](auto& model) {
          heads(model)
              ->mutable_key()
              ->mutable_bias()
              ->mutable_floats()
              ->set_values(1, NAN);
        }}});
  expect(RandomBilinearModel(1), {{"bilinear.weight", [](auto& model) {
                                     model.mutable_bilinear()->clear_weight();
                                   }}});
  expect(
      RandomAdditiveModel(1),
      {{"additive.query_weight",
        [](auto& model) { model.mutable_additive()->clear_query_weight(); }},
       {"additive.key_weight",
        [](auto& model) { model.mutable_additive()->clear_key_weight(); }},
       {"additive.output_weight",
        [](auto& model) { model.mutable_additive()->clear_output_weight(); }},
       {"additive.output_weight", [](auto& model) {
          model.mutable_additive()
              ->mutable_output_weight()
              ->mutable_floats()
              ->add_values(1);
        }}});
  ExpectInvalid(Create(v1::CreateModelRequest()), "model");
  v1::ListModelsResponse listed;
  ASSERT_TRUE(List({}, &listed).ok());
  EXPECT_EQ(listed.models_size(), 0);
}

TEST_F(ModelServiceTest, OverLimitsAreResourceExhausted) {
  v1::CreateModelRequest request = RequestOf(RandomMultiHeadModel(1));
  request.mutable_model()->mutable_multi_head()->set_head_count(257);
  ExpectError(Create(request), grpc::StatusCode::RESOURCE_EXHAUSTED,
              "model.multi_head.head_count");
  request = RequestOf(RandomBilinearModel(1));
  request.mutable_model()->mutable_bilinear()->mutable_weight()->set_row_count(
      65537);
  ExpectError(Create(request), grpc::StatusCode::RESOURCE_EXHAUSTED,
              "model.bilinear.weight.row_count");
  request = RequestOf({BilinearForm{{1, 1, {1}}}});
  for (int i = 0; i < 17; ++i) {
    v1::ProjectionProbe* probe = request.add_probes();
    probe->set_projection(v1::PROJECTION_KIND_KEY);
    probe->mutable_input()->mutable_floats()->add_values(2);
    probe->mutable_output()->mutable_floats()->add_values(2);
  }
  ExpectError(Create(request), grpc::StatusCode::RESOURCE_EXHAUSTED, "probes");
}

TEST_F(ModelServiceTest, ProbesMustHold) {
  v1::CreateModelRequest request =
      RequestOf({BilinearForm{{2, 2, {1, 2, 3, 4}}}});
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      R"pb(
        probes {
          projection: PROJECTION_KIND_KEY
          input { floats { values: [ 1, 0 ] } }
          output { floats { values: [ 1, 3 ] } }
        }
        probes {
          projection: PROJECTION_KIND_KEY
          input { floats { values: [ 1, 0 ] } }
          output { floats { values: [ 1, 2 ] } }
        }
      )pb",
      &request));
  const grpc::Status status = Create(request);
  ExpectInvalid(status, "probes[1].output");
  EXPECT_THAT(status.error_message(),
              HasSubstr("the transposed matrix gives it"));
  v1::CreateModelRequest spoilt = request;
  spoilt.mutable_probes(0)->set_projection(v1::PROJECTION_KIND_UNSPECIFIED);
  ExpectInvalid(Create(spoilt), "probes[0].projection");
  spoilt = request;
  spoilt.mutable_probes(0)->set_projection(v1::PROJECTION_KIND_VALUE);
  ExpectInvalid(Create(spoilt), "probes[0].projection");
  spoilt = request;
  spoilt.mutable_probes(0)->clear_input();
  ExpectInvalid(Create(spoilt), "probes[0].input");
  spoilt = request;
  spoilt.mutable_probes(0)->mutable_output()->Clear();
  ExpectInvalid(Create(spoilt), "probes[0].output.encoding");
  request.mutable_probes()->RemoveLast();
  EXPECT_TRUE(Create(request).ok());
}

}  // namespace
}  // namespace attendant
