// The worked LSI example, 7 people x 5 films, through the running server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using Matrix = std::vector<std::vector<double>>;

constexpr double kUnitRoundoff = 0x1p-24;  // of binary32

class LsiOverTheWireTest : public ::testing::Test {
 protected:
  void SetUp() override {
    example_ = nlohmann::json::parse(
        ReadWholeFile(absl::StrCat(kSourceDir, "/examples/lsi/lsi.json")));
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
    ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
  }

  // Returns row `film` of V_2.
  std::vector<double> FilmKey(int film) const {
    return {example_["Vt"][0][film], example_["Vt"][1][film]};
  }

  nlohmann::json example_;
  ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

double Norm(const std::vector<double>& vector) {
  double squared = 0;
  for (const double component : vector) squared += component * component;
  return std::sqrt(squared);
}

// Bound on the error of a logit q . k computed in binary32 from rounded inputs:
// each of dim products carries two roundings of its inputs and one of its own,
// and the sum dim - 1 more; doubled for second order.
double LogitError(double query_norm, double key_norm, int dim) {
  return 2 * (dim + 2) * kUnitRoundoff * query_norm * key_norm;
}

std::map<std::string, double> WeightsOf(const v1::AttendResponse& answer) {
  std::map<std::string, double> weights;
  for (const v1::AttendedItem& item : answer.items()) {
    weights[item.id()] = item.weight();
  }
  return weights;
}

TEST_F(LsiOverTheWireTest, FilmsAreWeightedByTheFoldedInRatings) {
  ASSERT_OK(CreateCatalog(*client_, "films",
                          {KeyFieldOf("events", 2, v1::SCORE_KIND_DOT)}));
  std::vector<v1::Item> films;
  for (int film = 0; film < 5; ++film) {
    films.push_back(
        ItemOf(absl::StrCat("film", film), "events", FilmKey(film)));
  }
  ASSERT_OK(client_->BatchUpsertItems(UpsertOf("films", films)));

  const std::map<std::string, std::vector<double>> expected = {
      {"P8",
       {.302767098227, .299042489005, .302767098227, .047711657270,
        .047711657270}},
      {"P9",
       {.313059026997, .338481127780, .313059026997, .017700409113,
        .017700409113}}};
  for (const auto& [person, weights] : expected) {
    SCOPED_TRACE(person);
    v1::AttendRequest request;
    request.set_catalog("films");
    request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
    v1::Examples& examples = *request.mutable_query()->mutable_examples();
    examples.set_exclude_examples(false);
    for (int film = 0; film < 5; ++film) {
      const double rating = example_[person][film];
      if (rating == 0) continue;
      v1::Example* example = examples.add_examples();
      example->set_id(absl::StrCat("film", film));
      example->set_weight(rating);
    }
    ASSERT_OK_AND_ASSIGN(const v1::AttendResponse answer,
                         client_->Attend(request));
    std::map<std::string, double> found = WeightsOf(answer);
    ASSERT_EQ(found.size(), 5u);
    const double query_norm =
        Norm(example_[person + "_hat"].get<std::vector<double>>());
    for (int film = 0; film < 5; ++film) {
      // The query is itself a rounded sum, which counts as one more dimension.
      // An error d in every logit changes a weight by a factor of at most exp(2
      // d).
      const double tolerance =
          2 * LogitError(query_norm, Norm(FilmKey(film)), 3) + kUnitRoundoff;
      EXPECT_NEAR(found[absl::StrCat("film", film)], weights[film], tolerance);
    }
  }
}

TEST_F(LsiOverTheWireTest, PeopleArePooledIntoPredictedRatings) {
  ASSERT_OK(CreateCatalog(*client_, "people",
                          {KeyFieldOf("key", 2, v1::SCORE_KIND_SCALED_DOT)},
                          5));
  const Matrix ratings = example_["X"];
  std::vector<v1::Item> people;
  double max_key_norm = 0;
  for (int person = 0; person < 7; ++person) {
    const std::vector<double> key = {
        example_["U"][person][0].get<double>() * example_["s"][0].get<double>(),
        example_["U"][person][1].get<double>() *
            example_["s"][1].get<double>()};
    max_key_norm = std::max(max_key_norm, Norm(key));
    people.push_back(ItemOf(absl::StrCat("P", person + 1), "key", key));
    *people.back().mutable_value() = VectorOf(ratings[person]);
  }
  ASSERT_OK(client_->BatchUpsertItems(UpsertOf("people", people)));

  for (const std::string person : {"P8", "P9"}) {
    SCOPED_TRACE(person);
    const nlohmann::json& expected = example_["attention"][person];
    const auto query = example_[person + "_hat"].get<std::vector<double>>();
    v1::AttendRequest request;
    request.set_catalog("people");
    request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
    *request.mutable_query()->mutable_vector() = VectorOf(query);
    ASSERT_OK_AND_ASSIGN(const v1::AttendResponse answer,
                         client_->Attend(request));
    const double logit_error =
        LogitError(Norm(query), max_key_norm, 2) / std::sqrt(2);
    EXPECT_NEAR(answer.log_partition(), expected["logsumexp"].get<double>(),
                logit_error + kUnitRoundoff * 32);
    std::map<std::string, double> found = WeightsOf(answer);
    for (int i = 0; i < 7; ++i) {
      EXPECT_NEAR(found[absl::StrCat("P", i + 1)],
                  expected["weights"][i].get<double>(),
                  2 * logit_error + kUnitRoundoff);
    }
    ASSERT_EQ(answer.pooled_value().values_size(), 5);
    for (int film = 0; film < 5; ++film) {
      // Ratings are at most 5.
      EXPECT_NEAR(answer.pooled_value().values(film),
                  expected["out"][film].get<double>(),
                  5 * (2 * logit_error + 8 * kUnitRoundoff));
    }
  }
}

TEST_F(LsiOverTheWireTest, FoldedInPeopleWithoutACommonFilmAreAlike) {
  ASSERT_OK(CreateCatalog(*client_, "folded",
                          {KeyFieldOf("raw", 5, v1::SCORE_KIND_COSINE),
                           KeyFieldOf("hat", 2, v1::SCORE_KIND_COSINE),
                           KeyFieldOf("scaled", 2, v1::SCORE_KIND_COSINE)}));
  v1::Item p8 = ItemOf("P8", "raw", example_["P8"]);
  (*p8.mutable_keys())["hat"] = VectorOf(example_["P8_hat"]);
  (*p8.mutable_keys())["scaled"] = VectorOf(example_["P8_hat_scaled"]);
  ASSERT_OK(client_->BatchUpsertItems(UpsertOf("folded", {p8})));

  const auto similarity = [&](const std::string& field,
                              const std::string& query) -> double {
    v1::AttendRequest request;
    request.set_catalog("folded");
    request.set_key_field(field);
    *request.mutable_query()->mutable_vector() = VectorOf(example_[query]);
    const auto answer = client_->Attend(request);
    EXPECT_OK(answer);
    if (!answer.ok() || answer->items_size() != 1) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return answer->items(0).similarity();
  };
  // For a cosine, both vectors are also rounded during normalisation.
  const double tolerance = LogitError(1, 1, 2 + 4);
  EXPECT_EQ(similarity("raw", "P9"), 0);
  EXPECT_NEAR(similarity("hat", "P9_hat"), 0.9925794247632609, tolerance);
  EXPECT_NEAR(similarity("scaled", "P9_hat_scaled"), 0.9877037969111454,
              tolerance);
}

}  // namespace
}  // namespace attendant
