// Mixes serialized requests of several kinds in given shares.
#ifndef ATTENDANT_CLIENT_LOAD_REQUESTS_REQUEST_MIX_H_
#define ATTENDANT_CLIENT_LOAD_REQUESTS_REQUEST_MIX_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

// The kinds of requests in a mix.
inline constexpr char kAttendKind[] = "attend";  // by vector, or as in a file
inline constexpr char kExamplesKind[] = "examples";  // by items of the catalog
inline constexpr char kFilterKind[] = "filter";      // by vector, with a filter
inline constexpr char kWriteKind[] = "write";        // upserts

struct MixShare {
  std::string kind;
  double share = 1;  // > 0, relative to the sum of all shares
};

// Reads "attend=80,examples=15,write=5"; a kind alone has share 1.
// InvalidArgument for another kind, one that is named twice, or a share that is
// not > 0.
absl::StatusOr<std::vector<MixShare>> ParseMix(absl::string_view text);

// A sequence of requests, which depends on the seed and the parts only.
// Thread-safe after the last Add.
class RequestMix {
 public:
  // Makes the bytes of a kind's request number `index`. Thread-safe.
  using Make = std::function<grpc::ByteBuffer(std::int64_t index)>;

  explicit RequestMix(std::uint64_t seed) : seed_(seed) {}

  // Adds a kind of requests. `method` is "/package.Service/Method", `share` >
  // 0.
  void Add(const std::string& kind, double share, std::string method,
           Make make);

  std::vector<std::string> kinds() const;
  // Returns the kind of a request as a position in kinds(), drawn by the
  // shares.
  int KindOf(std::int64_t index) const;
  const std::string& MethodOf(int kind) const;
  grpc::ByteBuffer Bytes(int kind, std::int64_t index) const;

 private:
  struct Part {
    std::string kind;
    double end = 0;  // the sum of its share and those before it
    std::string method;
    Make make;
  };

  const std::uint64_t seed_;
  std::vector<Part> parts_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REQUESTS_REQUEST_MIX_H_
