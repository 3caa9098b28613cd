#include "client/load/requests/prepare.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/api/importer.h"
#include "client/api/wire_vector.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Cosines are about .5 within a cluster and 0 between clusters, within some
// 1 / sqrt(dim). At this temperature these logits differ by 10, so that
// attention is on the cluster; at 1, the default, all items would have nearly
// the same weight.
constexpr double kTemperature = 0.05;

// Creates the catalog, or checks that it is empty.
absl::Status CreateEmpty(Client& client, const PrepareOptions& options) {
  v1::CreateCatalogRequest create;
  create.set_name(options.catalog);
  v1::KeyField* field = create.mutable_schema()->add_key_fields();
  field->set_name("key");
  field->set_dimension(static_cast<std::int32_t>(options.dim));
  field->set_score_kind(v1::SCORE_KIND_DOT);
  field->set_temperature(kTemperature);
  if (options.replace) {
    v1::DeleteCatalogRequest remove;
    remove.set_name(options.catalog);
    const absl::Status removed = client.DeleteCatalog(remove).status();
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  ATTENDANT_ASSIGN_OR_RETURN(const v1::CreateCatalogResponse created,
                             client.CreateCatalog(create));
  if (created.catalog().item_count() > 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        "catalog ", options.catalog, " holds ", created.catalog().item_count(),
        " items already; --replace deletes them"));
  }
  return absl::OkStatus();
}

}  // namespace

ClusteredVectors::ClusteredVectors(std::int64_t dim, std::int64_t cluster_count,
                                   std::uint64_t seed)
    : random_(seed), centres_(cluster_count, std::vector<float>(dim)) {
  for (std::vector<float>& centre : centres_) {
    for (float& component : centre) component = normal_(random_);
  }
}

std::vector<float> ClusteredVectors::Next() {
  std::vector<float> vector = centres_[random_() % centres_.size()];
  double squared_norm = 0;
  for (float& component : vector) {
    component += normal_(random_);
    squared_norm += static_cast<double>(component) * component;
  }
  const float factor = static_cast<float>(1 / std::sqrt(squared_norm));
  for (float& component : vector) component *= factor;
  return vector;
}

absl::StatusOr<PrepareResult> Prepare(
    Client& client, const PrepareOptions& options,
    const std::function<void(std::int64_t acknowledged_count)>& progress) {
  ATTENDANT_RETURN_IF_ERROR(CreateEmpty(client, options));
  ClusteredVectors vectors(options.dim, options.cluster_count, options.seed);
  const SteadyTime begin = SteadyNow();
  const std::unique_ptr<Importer> importer =
      client.StartImport(options.catalog, ImportOptions());
  for (std::int64_t i = 0; i < options.item_count; ++i) {
    v1::Item item;
    item.set_id(absl::StrCat("item-", i));
    (*item.mutable_keys())["key"] = ToVector(vectors.Next());
    ATTENDANT_RETURN_IF_ERROR(importer->Add(std::move(item)));
    if (i % 10000 == 0) progress(importer->progress().acknowledged_count);
  }
  ATTENDANT_RETURN_IF_ERROR(importer->Finish());
  const std::vector<v1::ImportFailure> failures = importer->TakeFailures();
  if (!failures.empty()) {
    return absl::InternalError(
        absl::StrCat(failures.size(), " items were refused, the first, ",
                     failures[0].id(), ": ", failures[0].status().message()));
  }
  PrepareResult result;
  result.item_count = importer->progress().stored_count;
  result.import_time = TimeSince(begin);
  return result;
}

absl::Status WaitForIndex(Client& client, const std::string& catalog,
                          absl::Duration timeout) {
  const SteadyTime give_up = SteadyAfter(timeout);
  v1::GetCatalogRequest request;
  request.set_name(catalog);
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const v1::GetCatalogResponse state,
                               client.GetCatalog(request));
    const auto& indexes = state.catalog().indexes();
    if (std::ranges::none_of(
            indexes, [](const v1::IndexStatus& i) { return i.training(); })) {
      return absl::OkStatus();
    }
    if (SteadyNow() > give_up) {
      return absl::DeadlineExceededError(absl::StrCat(
          "an index of catalog ", catalog, " is still trained after ",
          absl::FormatDuration(timeout)));
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
}

}  // namespace attendant
