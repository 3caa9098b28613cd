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
    // As ValidateItem counts: an empty text takes room as well.
    for (const std::string& entry : value.string_list_value().values()) {
      bytes += entry.size() + 2;
    }
  }
  return static_cast<std::int64_t>(bytes);
}

// What is below `least` is refused once the catalog is found, or is none given.
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

// Of requests with a batch of items.
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
  return CheckCount(TextBytes(item), 0, limits.attribute_bytes, "attributes",
                    " bytes of text");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::CreateCatalogRequest& request) {
  const v1::CatalogSchema& schema = request.schema();
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
                         const v1::DeleteMatchingItemsRequest& request) {
  return CheckText(request.filter(), limits.filter_bytes, "filter");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::AttendRequest& request) {
  return CheckText(request.filter(), limits.filter_bytes, "filter");
}

absl::Status CheckLimits(const RequestLimits& limits,
                         const v1::BatchAttendRequest& request) {
  ATTENDANT_RETURN_IF_ERROR(
      CheckMost(request.requests_size(), 1, limits.batch, "requests"));
  for (int i = 0; i < request.requests_size(); ++i) {
    const absl::Status status = CheckLimits(limits, request.requests(i));
    if (!status.ok()) {
      return PrefixField(status, absl::StrCat("requests[", i, "]."));
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant
