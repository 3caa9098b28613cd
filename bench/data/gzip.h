// Reads files compressed with gzip.
#ifndef ATTENDANT_BENCH_DATA_GZIP_H_
#define ATTENDANT_BENCH_DATA_GZIP_H_

#include <string>

#include "absl/status/statusor.h"

namespace attendant {

// Returns the whole file, decompressed. NotFound if it does not exist; DataLoss
// if it is damaged or incomplete.
absl::StatusOr<std::string> ReadGzip(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_GZIP_H_
