// What a load test found, for people and for programs.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "client/load/background_writer.h"
#include "client/load/load_result.h"
#include "client/load/verify.h"

namespace attendant {

struct LoadReport {
  LoadResult result;
  std::optional<double> rate;  // of an open loop; nothing of a closed one
  std::optional<WriterResult> writes;
  std::optional<VerifyResult> verify;
  // As asked for: server, catalog, concurrency, ...
  nlohmann::ordered_json options;
};

// Lines for people.
std::string TextReport(const LoadReport& report);

// One JSON object with the keys of ghz's reports; times are in nanoseconds.
// `verify` is ours.
std::string JsonReport(const LoadReport& report);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_H_
