// Files compressed with gzip.
#ifndef ATTENDANT_BENCH_DATA_GZIP_H_
#define ATTENDANT_BENCH_DATA_GZIP_H_

#include <string>

#include "absl/status/statusor.h"

namespace attendant {

// The whole file, decompressed. NotFound, DataLoss.
absl::StatusOr<std::string> ReadGzip(const std::string& path);

}  // namespace attendant

#endif  // ATTENDANT_BENCH_DATA_GZIP_H_
