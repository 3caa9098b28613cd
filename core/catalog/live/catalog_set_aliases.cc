// The aliases of a CatalogSet.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/base/status_details.h"
#include "core/catalog/live/catalog_set.h"

namespace attendant {
namespace {

absl::Status NoSuchAlias(absl::string_view alias) {
  return WithDetails(StatusWithReason(absl::StatusCode::kNotFound,
                                      absl::StrCat("no alias '", alias, "'"),
                                      "ALIAS_NOT_FOUND"),
                     {{"alias", alias}});
}

// Returns "names catalog 'blue'" or "does not exist".
std::string Describe(absl::string_view target) {
  if (target.empty()) return "does not exist";
  return absl::StrCat("names catalog '", target, "'");
}

// `expected` and `target` are catalogs, or empty if the alias does not exist.
absl::Status CheckExpected(absl::string_view alias, absl::string_view expected,
                           absl::string_view target) {
  if (expected == target) return absl::OkStatus();
  return WithDetails(
      StatusWithReason(absl::StatusCode::kAborted,
                       absl::StrCat("alias '", alias, "' ", Describe(target),
                                    "; want that it ", Describe(expected)),
                       "ALIAS_MOVED"),
      {{"alias", alias}, {"catalog", target}, {"expected_catalog", expected}});
}

}  // namespace

absl::StatusOr<CatalogSet::AliasMove> CatalogSet::SetAlias(
    absl::string_view alias, absl::string_view catalog,
    const std::optional<std::string>& expected) {
  ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(alias, "alias"));
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  ATTENDANT_ASSIGN_OR_RETURN(const auto target, Find(*now, catalog));
  ATTENDANT_RETURN_IF_ERROR(target->second.damage);
  std::string before;
  if (const auto found = now->find(alias); found != now->end()) {
    if (!found->second.is_alias) {
      return WithDetails(
          StatusWithReason(
              absl::StatusCode::kAlreadyExists,
              absl::StrCat("'", alias,
                           "' is a catalog; choose another name for the alias"),
              "CATALOG_EXISTS"),
          {{"catalog", alias}});
    }
    // A caller with an expectation must learn of the damage; one without may
    // replace the alias.
    if (expected.has_value()) {
      ATTENDANT_RETURN_IF_ERROR(found->second.damage);
    }
    before = found->second.target;
  } else if (Count(*now, /*aliases=*/true) >= kMaxAliases) {
    return MostThereMayBe(kMaxAliases, "aliases");
  }
  if (expected.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(CheckExpected(alias, *expected, before));
  }
  auto next = std::make_shared<Catalogs>(*now);
  Entry& entry = (*next)[std::string(alias)];
  entry = Entry();
  entry.is_alias = true;
  entry.target = target->first;
  // The new target becomes visible only after it is durable.
  ATTENDANT_FAIL_POINT_OR_RETURN("alias.before_record");
  ATTENDANT_RETURN_IF_ERROR(store_->PutAlias(alias, target->first));
  ATTENDANT_FAIL_POINT("alias.after_record");
  catalogs_.Store(std::move(next));
  return AliasMove{{std::string(alias), target->first}, std::move(before)};
}

absl::StatusOr<Alias> CatalogSet::GetAlias(absl::string_view alias) const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  const auto found = now->find(alias);
  if (found == now->end() || !found->second.is_alias) return NoSuchAlias(alias);
  ATTENDANT_RETURN_IF_ERROR(found->second.damage);
  return Alias{found->first, found->second.target};
}

std::vector<Alias> CatalogSet::ListAliases(absl::string_view after,
                                           std::int64_t limit) const {
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  std::vector<Alias> found;
  for (auto at = now->upper_bound(after);
       at != now->end() && static_cast<std::int64_t>(found.size()) < limit;
       ++at) {
    const Entry& entry = at->second;
    if (entry.is_alias && entry.damage.ok()) {
      found.push_back({at->first, entry.target});
    }
  }
  return found;
}

absl::Status CatalogSet::DeleteAlias(absl::string_view alias) {
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Catalogs> now = catalogs_.Load();
  const auto found = now->find(alias);
  if (found == now->end() || !found->second.is_alias) return NoSuchAlias(alias);
  auto next = std::make_shared<Catalogs>(*now);
  next->erase(found->first);
  ATTENDANT_RETURN_IF_ERROR(store_->RemoveAlias(alias));
  ATTENDANT_FAIL_POINT("alias.after_removal");
  catalogs_.Store(std::move(next));
  return absl::OkStatus();
}

}  // namespace attendant
