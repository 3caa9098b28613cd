#include "bench/data/gzip.h"

#include <zlib.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {

absl::StatusOr<std::string> ReadGzip(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return absl::ErrnoToStatus(errno, path);
  std::string content;
  std::vector<char> buffer(1 << 20);
  int count = 0;
  while ((count = gzread(file, buffer.data(),
                         static_cast<unsigned>(buffer.size()))) > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const int closed = gzclose(file);
  if (count < 0 || closed != Z_OK) {
    return absl::DataLossError(absl::StrCat(path, ": not a whole gzip file"));
  }
  return content;
}

}  // namespace attendant
