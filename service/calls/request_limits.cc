#include "service/calls/request_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

std::int64_t TextBytes(const v1::Item& item) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : item.attributes()) {
    bytes += value.string_value().size();
    // As in ValidateItem: an empty text takes space, too.
    for (const std::string& entry : value.string_list_value().values()) {
      bytes += entry.size() + 2;
    }
  }
  return static_cast<std::int64_t>(bytes);
}

// Values below `least` pass: they are rejected once the catalog is found, or
// mean that nothing was given.
absl::Status CheckMost(std::int64_t count, std::int64_t least,
                       std::int64_t most, absl::string_view field,
                       absl::string_view unit = "") {
  return CheckCount(std::max(least, count), least, most, field, unit);
}

absl::Status CheckText(const std::string& text, std::int64_t most,
                       absl::string_view field) {
  return CheckMost(static_cast<std::int64_t>(text.size()), 1, most, field,
                   " bytes");
}

absl::Status CheckExamples(const v1::Query& query, std::int64_t most) {
  return CheckMost(query.examples().examples_size(), 1, most,
                   "query.examples.examples");
}

absl::Status CheckCounts(const RequestLimits& limits,
                         const v1::AttendRequest& request) {
  const SelectKind kind = request.select_kind() == v1::SELECT_KIND_HARD
                              ? SelectKind::kHard
                              : SelectKind::kSoft;
  const std::int64_t result_count =
      request.has_result_count()
          ? request.result_count()
          : DefaultResultCount(kind, request.has_min_mass());
  ATTENDANT_RETURN_IF_ERROR(
      CheckMost(result_count, 1, limits.result_count, "result_count"));
  const std::int64_t shortlist_count =
      request.has_shortlist_count()
          ? request.shortlist_count()
          : DefaultShortlistCount(result_count, request.has_min_mass());
  return CheckMost(shortlist_count, 1, limits.shortlist_count,
                   "shortlist_count");
}

// Checks requests with a batch of items.
template <typename Request>
absl::Status CheckWrite(const RequestLimits& limits, const Request& request) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckMost(request.items_size(), 1, limits.batch, "items"));
  for (int i = 0; i < request.items_size(); ++i) {
    const absl::Status status = CheckItem(limits, request.items(i));
    if (!status.ok()) {
      return PrefixField(status, absl::StrCat("items[", i, "]."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckItem(const RequestLimits& limits, const v1::Item& item) {
  ATTENDANT_RETURN_IF_ERROR(CheckText(item.id(), limits.id_bytes, "id"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(TextBytes(item), 0,
                                       limits.attribute_bytes, "attributes",
                                       " bytes of text"));
  return CheckCount(static_cast<std::int64_t>(item.opaque_value().size()), 0,
                    limits.opaque_value_bytes, "opaque_value", " bytes");
}

absl::Status CheckNewSchema(const RequestLimits& limits,
                            const v1::CatalogSchema& schema) {
  for (int i = 0; i < schema.key_fields_size(); ++i) {
    ATTENDANT_RETURN_IF_ERROR(
        CheckMost(schema.key_fields(i).dimension(), 1, limits.dimension,
                  absl::StrCat("schema.key_fields[", i, "].dimension")));
  }
  return CheckMost(schema.value_dimension(), 0, limits.dimension,
                   "schema.value_dimension");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchUpsertItemsRequest& request) {
  return CheckWrite(limits, request);
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchUpdateItemsRequest& request) {
  return CheckWrite(limits, request);
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchGetItemsRequest& request) {
  return CheckMost(request.ids_size(), 1, limits.batch, "ids");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchDeleteItemsRequest& request) {
  return CheckMost(request.ids_size(), 1, limits.batch, "ids");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::ListItemsRequest& request) {
  return CheckText(request.filter(), limits.filter_bytes, "filter");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::DeleteMatchingItemsRequest& request) {
  return CheckText(request.filter(), limits.filter_bytes, "filter");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::AttendRequest& request) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckText(request.filter(), limits.filter_bytes, "filter"));
  ATTENDANT_RETURN_IF_ERROR(CheckMost(request.allow_list().ids_size(), 0,
                                      limits.id_list_count, "allow_list.ids"));
  ATTENDANT_RETURN_IF_ERROR(CheckMost(request.deny_list().ids_size(), 0,
                                      limits.id_list_count, "deny_list.ids"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckExamples(request.query(), limits.example_count));
  for (int h = 0; h < request.heads_size(); ++h) {
    const absl::Status status =
        CheckExamples(request.heads(h).query(), limits.example_count);
    if (!status.ok()) {
      return PrefixField(status, absl::StrCat("heads[", h, "]."));
    }
  }
  return CheckCounts(limits, request);
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchAttendRequest& request) {
  return CheckMost(request.requests_size(), 1, limits.batch, "requests");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::RankCandidatesRequest& request) {
  const v1::CandidateQuery& query = request.candidates().query();
  ATTENDANT_RETURN_IF_ERROR(CheckText(query.filter(), limits.filter_bytes,
                                      "candidates.query.filter"));
  return CheckMost(query.deny_list().ids_size(), 0, limits.id_list_count,
                   "candidates.query.deny_list.ids");
}

}  // namespace attendant
