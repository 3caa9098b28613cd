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

// Adds a limit in the range from `least` to its default.
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
           "Maximum number of connections, capped at a third of the files that "
           "the process may open; further ones are refused");
  AddCount(app, "--max-streams", "ATTENDANT_MAX_STREAMS",
           limits.max_stream_count, "COUNT",
           "Maximum number of concurrent calls on a connection; further ones "
           "wait at the client");
  AddCount(app, "--idle-seconds", "ATTENDANT_IDLE_SECONDS", limits.idle_seconds,
           "SECONDS",
           "Close a connection after SECONDS without calls, and cancel an "
           "import after SECONDS without a message");
  AddCount(app, "--connection-age-seconds", "ATTENDANT_CONNECTION_AGE_SECONDS",
           limits.age_seconds, "SECONDS",
           "Age at which a connection stops taking new calls; clients "
           "reconnect by themselves");
  AddCount(app, "--connection-grace-seconds",
           "ATTENDANT_CONNECTION_GRACE_SECONDS", limits.age_grace_seconds,
           "SECONDS",
           "Time that calls in progress have to finish after "
           "--connection-age-seconds; set it above the longest import or "
           "export of a snapshot");
  AddCount(app, "--stall-seconds", "ATTENDANT_STALL_SECONDS",
           limits.stall_seconds, "SECONDS",
           "Cancel a call whose client does not read the reply within SECONDS "
           "plus 1 second per 64 KiB, and close a connection whose calls do "
           "not arrive within SECONDS");
  AddBytes(
      app, "--request-memory", "ATTENDANT_REQUEST_MEMORY",
      limits.request_memory_bytes,
      "Maximum memory of requests being received; above it calls are ended");
  AddBytes(app, "--reply-memory", "ATTENDANT_REPLY_MEMORY",
           limits.reply_memory_bytes,
           "Maximum memory of replies being sent; above it the calls that have "
           "waited longest for their clients are cancelled");
  AddMost(
      app, "--max-metadata-bytes", "ATTENDANT_MAX_METADATA_BYTES",
      limits.metadata_bytes, "BYTES",
      "Maximum size of a call's metadata: names, values and 32 bytes per entry",
      kMinMetadataBytes);
}

void AddLimitFlags(CLI::App& app, RequestLimits& limits) {
  AddMost(app, "--max-dimension", "ATTENDANT_MAX_DIMENSION", limits.dimension,
          "COUNT",
          "Maximum number of components of a key or value in a new catalog; a "
          "restored catalog may have more");
  AddMost(app, "--max-batch", "ATTENDANT_MAX_BATCH", limits.batch, "COUNT",
          "Maximum number of items, ids or queries in a batch");
  AddMost(app, "--max-id-bytes", "ATTENDANT_MAX_ID_BYTES", limits.id_bytes,
          "BYTES", "Maximum length of the id of a written item");
  AddMost(app, "--max-attribute-bytes", "ATTENDANT_MAX_ATTRIBUTE_BYTES",
          limits.attribute_bytes, "BYTES",
          "Maximum size of the text in the attributes of a written item");
  AddMost(app, "--max-filter-bytes", "ATTENDANT_MAX_FILTER_BYTES",
          limits.filter_bytes, "BYTES", "Maximum length of a filter as text");
  AddMost(app, "--max-filter-depth", "ATTENDANT_MAX_FILTER_DEPTH",
          limits.filter_depth, "COUNT",
          "Maximum nesting depth of the conditions of a filter");
  AddMost(app, "--max-opaque-value-bytes", "ATTENDANT_MAX_OPAQUE_VALUE_BYTES",
          limits.opaque_value_bytes, "BYTES",
          "Maximum size of the opaque value of a written item");
  AddMost(app, "--max-result-count", "ATTENDANT_MAX_RESULT_COUNT",
          limits.result_count, "COUNT",
          "Maximum result_count of an Attend query. If a query does not set "
          "it: 10, or 1,000 with min_mass");
  AddMost(
      app, "--max-shortlist-count", "ATTENDANT_MAX_SHORTLIST_COUNT",
      limits.shortlist_count, "COUNT",
      "Maximum shortlist_count of a query. If a query does not set it: 10 "
      "times result_count, or result_count with min_mass, and at least 100");
  AddMost(app, "--max-examples", "ATTENDANT_MAX_EXAMPLES", limits.example_count,
          "COUNT",
          "Maximum number of examples of a query, or of each head of a query "
          "with several heads");
  AddMost(app, "--max-id-list", "ATTENDANT_MAX_ID_LIST", limits.id_list_count,
          "COUNT", "Maximum number of ids in an allow list or a deny list");
  AddMost(app, "--max-catalogs", "ATTENDANT_MAX_CATALOGS", limits.catalog_count,
          "COUNT",
          "Maximum number of catalogs, including damaged ones; catalogs beyond "
          "it that exist at startup are served, but none can be created");
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
