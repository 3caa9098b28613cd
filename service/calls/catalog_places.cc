#include "service/calls/catalog_places.h"

#include "absl/strings/str_cat.h"

namespace attendant {

absl::Status CatalogPlaces::Take(const std::string& name) {
  MutexLock lock(&mutex_);
  const bool is_there = !absl::IsNotFound(catalogs_->Get(name).status());
  if (!is_there && !being_made_.contains(name) && Count() >= most_) {
    return StatusWithReason(
        absl::StatusCode::kResourceExhausted,
        absl::StrCat("there are ", most_, " catalogs, the most allowed"),
        kOverLimit);
  }
  being_made_.insert(name);
  return absl::OkStatus();
}

void CatalogPlaces::GiveBack(const std::string& name) {
  MutexLock lock(&mutex_);
  being_made_.erase(being_made_.find(name));
}

std::int64_t CatalogPlaces::Count() const {
  std::set<std::string> names(being_made_.begin(), being_made_.end());
  for (const auto& catalog : catalogs_->List("", kMaxCatalogs)) {
    names.insert(catalog->record().name);
  }
  for (const auto& [name, status] : catalogs_->damages()) {
    // Aliases are damaged, too.
    if (absl::IsNotFound(catalogs_->GetAlias(name).status())) {
      names.insert(name);
    }
  }
  return static_cast<std::int64_t>(names.size());
}

}  // namespace attendant
