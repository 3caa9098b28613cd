// `attendant model` against a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/files/npy.h"
#include "tests/client/safetensors_bytes.h"
#include "tests/integration/command_fixture.h"
#include "tests/integration/requests.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ModelCommandTest : public CommandFixture {
 protected:
  // Two heads over 4 components: W_Q holds 1, 2, ...; W_K, W_V and W_O are the
  // identity. Transposed, W_Q is another matrix of the same shape.
  std::string PackedFile(bool transposed) {
    std::vector<float> in_proj;
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 4; ++c) {
        in_proj.push_back(
            static_cast<float>(transposed ? 4 * c + r + 1 : 4 * r + c + 1));
      }
    }
    std::vector<float> identity;
    for (int i = 0; i < 16; ++i) identity.push_back(i % 5 == 0 ? 1 : 0);
    for (int i = 0; i < 2; ++i) {
      in_proj.insert(in_proj.end(), identity.begin(), identity.end());
    }
    return File(
        transposed ? "transposed.safetensors" : "right.safetensors",
        SafetensorsBytes({F32Tensor("attn.in_proj_weight", {12, 4}, in_proj),
                          F32Tensor("attn.out_proj.weight", {4, 4}, identity),
                          F32Tensor("norm.weight", {4}, {1, 1, 1, 1})}));
  }
};

TEST_F(ModelCommandTest, ImportsListsShowsAndDeletes) {
  EXPECT_THAT(Run({"model", "list"}).out, HasSubstr("There are no models"));
  const std::string config = File(
      "config.json", R"({"embed_dim": 4, "num_heads": 2, "dropout": 0.1})");
  const CommandResult imported =
      Run({"model", "import", "text", PackedFile(false), "--prefix", "attn.",
           "--config", config});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;
  EXPECT_THAT(imported.out, AllOf(HasSubstr("Stored."), HasSubstr("2 heads")));
  EXPECT_THAT(imported.err, AllOf(HasSubstr("PyTorch's packed in_proj"),
                                  HasSubstr("Dropout of 0.1"),
                                  Not(HasSubstr("norm.weight"))));
  const json second = RunJson({"model", "import", "text", PackedFile(false),
                               "--prefix", "attn.", "--heads", "1"});
  EXPECT_EQ(second["model"]["version"], "2");
  EXPECT_EQ(second["model"]["headCount"], 1);

  const json all = RunJson({"model", "list"});
  ASSERT_EQ(all["models"].size(), 2u);
  EXPECT_EQ(all["models"][0]["headCount"], 2);
  EXPECT_EQ(all["models"][0]["headKeyDimension"], 2);
  EXPECT_GT(all["models"][0]["asymmetry"], 0);
  EXPECT_THAT(Run({"model", "list"}).out,
              AllOf(HasSubstr("text"), HasSubstr("multi_head")));
  const json newest = RunJson({"model", "show", "text"});
  EXPECT_EQ(newest["summary"]["version"], "2");
  EXPECT_FALSE(newest.contains("model") && !newest["model"].is_null());
  EXPECT_EQ(RunJson({"model", "show", "text", "--version",
                     "1"})["summary"]["version"],
            "1");

  EXPECT_EQ(RunJson({"model", "show", "text:1"})["summary"]["version"], "1");
  EXPECT_EQ(Run({"model", "show", "text:1", "--version", "2"}).exit_status, 2);
  EXPECT_EQ(Run({"model", "delete", "text"}).exit_status, 2);
  EXPECT_THAT(Run({"model", "delete", "text:1"}).out,
              HasSubstr("Deleted version 1 of text"));
  const CommandResult gone = Run({"model", "show", "text", "--version", "1"});
  EXPECT_EQ(gone.exit_status, 1);
  EXPECT_THAT(gone.err, HasSubstr("no version 1 of model 'text'"));
  // A version number is never reused, even after a restart.
  ASSERT_EQ(server_->Stop(), 0);
  Start();
  EXPECT_EQ(RunJson({"model", "import", "text", PackedFile(false), "--prefix",
                     "attn.", "--heads", "1"})["model"]["version"],
            "3");
  EXPECT_EQ(RunJson({"model", "list"})["models"].size(), 2u);
}

// The transposed matrix has the same shape, so that only the probe can tell.
TEST_F(ModelCommandTest, ProbeRefusesATransposedSquareMatrix) {
  const std::string probe =
      File("probe.json",
           R"({"projection": "query", "input": [1, 0, 0, 0],
          "output": [1, 5, 9, 13]})");
  const auto import = [&](bool transposed,
                          const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "model",    "import", "text",    PackedFile(transposed),
        "--prefix", "attn.",  "--heads", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  };
  EXPECT_EQ(import(true, {}).exit_status, 0) << "without a probe nobody knows";
  EXPECT_EQ(import(false, {"--probe", probe}).exit_status, 0);
  const CommandResult refused = import(true, {"--probe", probe});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("probes[0].output"),
                                 HasSubstr("differs from it by up to"),
                                 HasSubstr("the transposed matrix gives it")));
  const std::string broken = File("broken.json", R"({"projection": "query"})");
  EXPECT_THAT(import(false, {"--probe", broken}).err,
              AllOf(HasSubstr(broken), HasSubstr("input")));
}

TEST_F(ModelCommandTest, PackedAndPerHeadFilesAreStoredAlike) {
  ASSERT_EQ(RunJson({"model", "import", "packed", PackedFile(false), "--prefix",
                     "attn.", "--heads", "2"})["model"]["version"],
            "1");
  // W_Q_i is for x W: row c is what component c adds to the head's outputs.
  std::filesystem::create_directory(files_ / "heads");
  for (int head = 0; head < 2; ++head) {
    std::vector<float> query;
    std::vector<float> same;
    for (int c = 0; c < 4; ++c) {
      for (int j = 0; j < 2; ++j) {
        const int r = 2 * head + j;
        query.push_back(static_cast<float>(4 * r + c + 1));
        same.push_back(r == c ? 1 : 0);
      }
    }
    File(absl::StrCat("heads/W_Q_", head, ".npy"), NpyBytes(query, 2));
    File(absl::StrCat("heads/W_K_", head, ".npy"), NpyBytes(same, 2));
    File(absl::StrCat("heads/W_V_", head, ".npy"), NpyBytes(same, 2));
  }
  std::vector<float> identity;
  for (int i = 0; i < 16; ++i) identity.push_back(i % 5 == 0 ? 1 : 0);
  File("heads/W_O.npy", NpyBytes(identity, 4));
  const CommandResult imported =
      Run({"model", "import", "heads", files_ / "heads"});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;
  ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
  const auto weights = [&](const std::string& name) {
    v1::GetModelRequest request;
    request.mutable_model()->set_name(name);
    request.set_include_weights(true);
    const auto response = client->GetModel(request);
    EXPECT_OK(response);
    return response.ok() ? response->model().multi_head().SerializeAsString()
                         : "";
  };
  EXPECT_EQ(weights("packed"), weights("heads"));
}

TEST_F(ModelCommandTest, CreatingAgainTellsOfAnotherModel) {
  for (const char* name : {"taste", "other"}) {
    ASSERT_EQ(Run({"model", "import", name, PackedFile(false), "--prefix",
                   "attn.", "--heads", "2"})
                  .exit_status,
              0);
  }
  const auto create = [&](const std::string& model) {
    return Run({"catalog", "create", "tasted", "--key-field", "key:4:dot",
                "--model", "key=" + model});
  };
  EXPECT_EQ(create("taste:1").exit_status, 0);
  // The newest version is taste:1 already.
  EXPECT_EQ(create("taste").err, "");
  EXPECT_THAT(create("other").err,
              HasSubstr("model other of key (it has taste:1)"));
  // A temperature can be fitted only if logits are dot products.
  const std::string pairs = File("pairs.jsonl", "");
  EXPECT_THAT(
      Run({"fit", "temperature", "--catalog", "tasted", "--pairs", pairs}).err,
      HasSubstr("whose logits come from a model"));
}

TEST_F(ModelCommandTest, WrongUseIsExplained) {
  const std::string file = PackedFile(false);
  for (const auto& [arguments, what] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"text", file, "--prefix", "attn."}, "--heads: got none"},
           {{"text", file, "--prefix", "attn.", "--heads", "3"},
            "want a multiple of the 3 heads"},
           {{"text", file}, "want those that `attendant model import --help`"},
           {{"Text", file, "--prefix", "attn.", "--heads", "2"}, "model.name"},
           {{"text", files_ / "missing.npy"}, "missing.npy"}}) {
    std::vector<std::string> command = {"model", "import"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const CommandResult result = Run(command);
    EXPECT_EQ(result.exit_status, 1) << what;
    EXPECT_THAT(result.err, HasSubstr(what));
  }
  EXPECT_EQ(Run({"model", "delete", "text"}).exit_status, 2);
  EXPECT_EQ(Run({"model"}).exit_status, 2);
  EXPECT_THAT(Run({"model", "import", "--help"}).out,
              AllOf(HasSubstr("W_Q_i"), HasSubstr("--probe")));
}

json LsiExample() {
  return json::parse(
      ReadWholeFile(absl::StrCat(kSourceDir, "/examples/lsi/lsi.json")));
}

// Returns the ratings as `fit lsi --rating-column rating` reads them.
std::string RatingsOf(const json& example) {
  std::string events = "customer_id,item_id,time,rating\n";
  for (std::size_t person = 0; person < 7; ++person) {
    for (std::size_t film = 0; film < 5; ++film) {
      const int rating = example["X"][person][film].get<int>();
      if (rating == 0) continue;
      absl::StrAppend(&events, "P", person + 1, ",film", film,
                      ",2020-01-01T00:00:00Z,", rating, "\n");
    }
  }
  return events;
}

// Returns the film of each line "filmN" of ids.txt.
std::vector<std::size_t> FilmOrder(const std::string& ids) {
  std::vector<std::size_t> films;
  for (std::size_t at = 4; at < ids.size(); at += 6) {
    films.push_back(static_cast<std::size_t>(ids[at] - '0'));
  }
  return films;
}

// Ratings become W_Q = W_K = V_2.
TEST_F(ModelCommandTest, FromLsiStoresTheProjectionOfAFit) {
  const json example = LsiExample();
  const CommandResult fitted = Run(
      {"fit", "lsi", File("ratings.csv", RatingsOf(example)), "--rating-column",
       "rating", "--dim", "2", "--temperature", "1", "--out", files_ / "fit"});
  ASSERT_EQ(fitted.exit_status, 0) << fitted.err;
  const json stored =
      RunJson({"model", "from-lsi", files_ / "fit", "--name", "films"});
  EXPECT_EQ(stored["model"]["queryDimension"], 5);
  EXPECT_EQ(stored["model"]["headKeyDimension"], 2);
  EXPECT_EQ(stored["model"]["asymmetry"], 0);
  EXPECT_EQ(RunJson({"model", "from-lsi", files_ / "fit", "--name", "films",
                     "--scaled"})["model"]["version"],
            "2");

  ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
  v1::GetModelRequest request;
  request.mutable_model()->set_name("films");
  request.mutable_model()->set_version(1);
  request.set_include_weights(true);
  ASSERT_OK_AND_ASSIGN(const auto got, client->GetModel(request));
  v1::Vector bytes;
  bytes.set_float32_le(got.model().multi_head().query().weight().float32_le());
  ASSERT_OK_AND_ASSIGN(const std::vector<float> weight, FromVector(bytes));
  ASSERT_EQ(weight.size(), 10u);
  const std::vector<std::size_t> films =
      FilmOrder(ReadWholeFile(files_ / "fit/ids.txt"));
  ASSERT_EQ(films.size(), 5u);
  for (std::size_t d = 0; d < 2; ++d) {
    double sign = 0;  // arbitrary sign of the singular vector
    for (std::size_t column = 0; column < 5; ++column) {
      const double want = example["Vt"][d][films[column]];
      const double has = weight[5 * d + column];
      if (sign == 0) sign = want * has > 0 ? 1 : -1;
      // The fit has an error of 4e-14, and storing rounds once.
      EXPECT_NEAR(has, sign * want, 0x1p-24) << films[column];
    }
  }
}

// A bound on how far a weight may be from the example's, of itself: a logit is
// some (2 x 6 + 4) roundings of its size off, doubled for second order; a
// weight by twice that, and by its own e.
double RelativeTolerance(const json& logits) {
  double largest = 0;
  for (const json& logit : logits) {
    largest = std::max(largest, logit.get<double>());
  }
  return 2 * 2 * 16 * 0x1p-24 * largest + 0x1p-20;
}

// From ratings to attention: a fitted model, and raw rows P1 to P7 as keys and
// values for P8 and P9.
class FilmsModelTest : public ModelCommandTest {
 protected:
  void SetUp() override {
    ModelCommandTest::SetUp();
    ASSERT_EQ(Run({"fit", "lsi", File("ratings.csv", RatingsOf(example_)),
                   "--rating-column", "rating", "--dim", "2", "--temperature",
                   "1", "--out", files_ / "fit"})
                  .exit_status,
              0);
    RunJson({"model", "from-lsi", files_ / "fit", "--name", "films"});
    films_ = FilmOrder(ReadWholeFile(files_ / "fit/ids.txt"));
    ASSERT_EQ(films_.size(), 5u);
  }

  // A row is in the order of ids.txt, as the model expects.
  std::vector<double> RowOf(const json& ratings) const {
    std::vector<double> row;
    for (const std::size_t film : films_) {
      row.push_back(ratings[film].get<double>());
    }
    return row;
  }

  // The pooled ratings are in the same order and at most 5.
  void ExpectPooled(const char* person,
                    const std::vector<float>& pooled) const {
    const json& want = example_["attention"][person];
    ASSERT_EQ(pooled.size(), 5u);
    const std::vector<double> out = RowOf(want["out"]);
    for (std::size_t film = 0; film < 5; ++film) {
      EXPECT_NEAR(pooled[film], out[film],
                  5 * RelativeTolerance(want["logits"]));
    }
  }

  const json example_ = LsiExample();
  std::vector<std::size_t> films_;
};

TEST_F(FilmsModelTest, SequencesAttendOverRawRows) {
  v1::ContextualizeRequest request;
  for (const char* person : {"P8", "P9"}) {
    *request.mutable_sequence()->mutable_vectors()->add_vectors() =
        VectorOf(RowOf(example_[person]));
  }
  for (const json& ratings : example_["X"]) {
    *request.mutable_memory()->mutable_vectors()->add_vectors() =
        VectorOf(RowOf(ratings));
  }
  request.add_layers()->set_name("films");
  request.set_score_kind(v1::SCORE_KIND_SCALED_DOT);
  request.set_include_weights(true);
  ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
  ASSERT_OK_AND_ASSIGN(const v1::ContextualizeResponse response,
                       client->Contextualize(request));
  ASSERT_EQ(response.head_weights_size(), 1);
  const auto& weights = response.head_weights(0).weights();
  ASSERT_EQ(weights.size(), 2 * 7);
  EXPECT_NEAR(weights[3], .9702611228774861, 1e-5);
  EXPECT_NEAR(weights[7 + 3], .9982980905399841, 1e-5);
  int i = 0;
  for (const char* person : {"P8", "P9"}) {
    const json& want = example_["attention"][person];
    for (int p = 0; p < 7; ++p) {
      const double weight = want["weights"][p];
      EXPECT_NEAR(weights[7 * i + p], weight,
                  RelativeTolerance(want["logits"]) * weight)
          << person << " over P" << p + 1;
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<float> output,
                         FromVector(response.outputs(i)));
    ExpectPooled(person, output);
    ++i;
  }
}

TEST_F(FilmsModelTest, CatalogsAttendOverRawRows) {
  ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
  v1::KeyField field = KeyFieldOf("ratings", 5, v1::SCORE_KIND_SCALED_DOT);
  field.mutable_model()->set_name("films");
  ASSERT_OK(CreateCatalog(*client, "people", {field}));
  std::vector<v1::Item> people;
  for (std::size_t p = 0; p < 7; ++p) {
    people.push_back(
        ItemOf(absl::StrCat("P", p + 1), "ratings", RowOf(example_["X"][p])));
  }
  ASSERT_OK(client->BatchUpsertItems(UpsertOf("people", people)));
  for (const char* person : {"P8", "P9"}) {
    v1::AttendRequest request;
    request.set_catalog("people");
    *request.mutable_query()->mutable_vector() =
        VectorOf(RowOf(example_[person]));
    ASSERT_OK_AND_ASSIGN(const v1::AttendResponse response,
                         client->Attend(request));
    ASSERT_EQ(response.items_size(), 7);
    const json& want = example_["attention"][person];
    EXPECT_EQ(response.items(0).id(), "P4");
    EXPECT_NEAR(response.items(0).weight(), want["weights"][3], 1e-5);
    for (const v1::AttendedItem& item : response.items()) {
      const std::size_t p = static_cast<std::size_t>(item.id()[1] - '1');
      const double weight = want["weights"][p];
      EXPECT_NEAR(item.weight(), weight,
                  RelativeTolerance(want["logits"]) * weight)
          << person << " over " << item.id();
    }
    const auto& pooled = response.pooled_value().values();
    ExpectPooled(person, {pooled.begin(), pooled.end()});
    // The model has one head and neither W_V nor W_O.
    const auto& output = response.model_output();
    ExpectPooled(person, {output.begin(), output.end()});
  }
}

}  // namespace
}  // namespace attendant
