#include "service/attendantd/limit_flags.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "service/attendantd/flag_values.h"

namespace attendant {
namespace {

constexpr char kLimitGroup[] = "Limits";

void AddCount(CLI::App& app, const std::string& flag,
              const std::string& variable, int& count, const std::string& unit,
              const std::string& description) {
  app.add_option(flag, count, description)
      ->envname(variable)
      ->group(kLimitGroup)
      ->type_name(unit)
      ->check(InRange(1, 1'000'000))
      ->capture_default_str();
}

void AddBytes(CLI::App& app, const std::string& flag,
              const std::string& variable, std::int64_t& bytes,
              const std::string& description) {
  app.add_option(flag, bytes, description)
      ->envname(variable)
      ->group(kLimitGroup)
      ->type_name("BYTES")
      ->transform(AsBytes())
      ->check(
          InRange(std::int64_t{1}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
}

// From `least` to what it is by default.
template <typename Integer>
void AddMost(CLI::App& app, const std::string& flag,
             const std::string& variable, Integer& most,
             const std::string& unit, const std::string& description,
             Integer least = 1) {
  app.add_option(flag, most, description)
      ->envname(variable)
      ->group(kLimitGroup)
      ->type_name(unit)
      ->check(InRange(least, most))
      ->capture_default_str();
}

}  // namespace

void AddLimitFlags(CLI::App& app, TransportLimits& limits) {
  AddCount(app, "--max-connections", "ATTENDANT_MAX_CONNECTIONS",
           limits.max_connection_count, "COUNT",
           "Connections at a time, but no more than a third of the files that "
           "the process may open; more are refused");
  AddCount(app, "--max-streams", "ATTENDANT_MAX_STREAMS",
           limits.max_stream_count, "COUNT",
           "Calls under way on one connection; more wait at the client");
  AddCount(app, "--idle-seconds", "ATTENDANT_IDLE_SECONDS", limits.idle_seconds,
           "SECONDS",
           "A connection without calls for so long is closed, and an import "
           "that brings no message cancelled");
  AddCount(app, "--connection-age-seconds", "ATTENDANT_CONNECTION_AGE_SECONDS",
           limits.age_seconds, "SECONDS",
           "After so long a connection takes no new calls: clients connect "
           "again by themselves");
  AddCount(app, "--connection-grace-seconds",
           "ATTENDANT_CONNECTION_GRACE_SECONDS", limits.age_grace_seconds,
           "SECONDS",
           "How long calls that are under way then may go on: above the "
           "longest import or export of a snapshot");
  AddCount(app, "--stall-seconds", "ATTENDANT_STALL_SECONDS",
           limits.stall_seconds, "SECONDS",
           "A call whose client does not take its reply for so long, and a "
           "second for each 64 KiB of it, is cancelled; a connection whose "
           "calls do not come for as long is closed");
  AddBytes(app, "--request-memory", "ATTENDANT_REQUEST_MEMORY",
           limits.request_memory_bytes,
           "Memory of requests on their way in; above it calls are ended");
  AddBytes(app, "--reply-memory", "ATTENDANT_REPLY_MEMORY",
           limits.reply_memory_bytes,
           "Memory of replies on their way out; above it the calls that have "
           "waited longest for their clients are cancelled");
  AddMost(app, "--max-metadata-bytes", "ATTENDANT_MAX_METADATA_BYTES",
          limits.metadata_bytes, "BYTES",
          "Metadata of a call: names, values and 32 bytes for each",
          kMinMetadataBytes);
}

void AddLimitFlags(CLI::App& app, RequestLimits& limits) {
  AddMost(app, "--max-dimension", "ATTENDANT_MAX_DIMENSION", limits.dimension,
          "COUNT",
          "Components of a key or value in a catalog that is made; one that "
          "is restored may have more");
  AddMost(app, "--max-batch", "ATTENDANT_MAX_BATCH", limits.batch, "COUNT",
          "Items, ids or queries in a batch");
  AddMost(app, "--max-id-bytes", "ATTENDANT_MAX_ID_BYTES", limits.id_bytes,
          "BYTES", "Id of an item that is written");
  AddMost(app, "--max-attribute-bytes", "ATTENDANT_MAX_ATTRIBUTE_BYTES",
          limits.attribute_bytes, "BYTES",
          "Text in the attributes of an item that is written");
  AddMost(app, "--max-filter-bytes", "ATTENDANT_MAX_FILTER_BYTES",
          limits.filter_bytes, "BYTES", "A filter as text");
  AddMost(app, "--max-filter-depth", "ATTENDANT_MAX_FILTER_DEPTH",
          limits.filter_depth, "COUNT",
          "How deep the conditions of a filter may be nested");
  AddMost(app, "--max-opaque-value-bytes", "ATTENDANT_MAX_OPAQUE_VALUE_BYTES",
          limits.opaque_value_bytes, "BYTES",
          "Opaque value of an item that is written");
  AddMost(
      app, "--max-result-count", "ATTENDANT_MAX_RESULT_COUNT",
      limits.result_count, "COUNT",
      "result_count of a query of Attend; one without asks for 10, or 1,000 "
      "with min_mass");
  AddMost(app, "--max-shortlist-count", "ATTENDANT_MAX_SHORTLIST_COUNT",
          limits.shortlist_count, "COUNT",
          "shortlist_count of a query; one without asks for 10 times "
          "result_count, or with min_mass once, and at least 100");
  AddMost(app, "--max-examples", "ATTENDANT_MAX_EXAMPLES", limits.example_count,
          "COUNT", "Examples of a query, or of a head of several");
  AddMost(app, "--max-id-list", "ATTENDANT_MAX_ID_LIST", limits.id_list_count,
          "COUNT", "Ids in an allow list or a deny list");
  AddMost(app, "--max-catalogs", "ATTENDANT_MAX_CATALOGS", limits.catalog_count,
          "COUNT",
          "Catalogs that may be made, damaged ones included; more that are "
          "there at the start are served");
}

std::string ToText(const RequestLimits& limits) {
  return absl::StrCat("max-dimension = ", limits.dimension, "\n",
                      "max-batch = ", limits.batch, "\n",
                      "max-id-bytes = ", limits.id_bytes, "\n",
                      "max-attribute-bytes = ", limits.attribute_bytes, "\n",
                      "max-filter-bytes = ", limits.filter_bytes, "\n",
                      "max-filter-depth = ", limits.filter_depth, "\n",
                      "max-opaque-value-bytes = ", limits.opaque_value_bytes,
                      "\n", "max-result-count = ", limits.result_count, "\n",
                      "max-shortlist-count = ", limits.shortlist_count, "\n",
                      "max-examples = ", limits.example_count, "\n",
                      "max-id-list = ", limits.id_list_count, "\n",
                      "max-catalogs = ", limits.catalog_count, "\n");
}

std::string ToText(const TransportLimits& limits) {
  return absl::StrCat("max-connections = ", limits.max_connection_count, "\n",
                      "max-streams = ", limits.max_stream_count, "\n",
                      "idle-seconds = ", limits.idle_seconds, "\n",
                      "connection-age-seconds = ", limits.age_seconds, "\n",
                      "connection-grace-seconds = ", limits.age_grace_seconds,
                      "\n", "stall-seconds = ", limits.stall_seconds, "\n",
                      "request-memory = ", limits.request_memory_bytes, "\n",
                      "reply-memory = ", limits.reply_memory_bytes, "\n",
                      "max-metadata-bytes = ", limits.metadata_bytes, "\n");
}

}  // namespace attendant
