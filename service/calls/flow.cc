#include "service/calls/flow.h"

#include <cstddef>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "service/calls/authorize.h"

namespace attendant {
namespace {

// Field 1, of a length that follows.
constexpr std::uint8_t kFirstFieldTag = (1 << 3) | 2;
// Lengths of one byte; names of catalogs are shorter.
constexpr std::uint8_t kMostLength = 127;

std::uint64_t HashOf(absl::string_view text) {
  return absl::Hash<absl::string_view>()(text);
}

std::uint64_t HashOfFirstField(const grpc::Slice& slice) {
  const std::uint8_t* bytes = slice.begin();
  if (slice.size() < 2 || bytes[0] != kFirstFieldTag) return 0;
  const std::size_t length = bytes[1];
  if (length > kMostLength || slice.size() < 2 + length) return 0;
  return HashOf({reinterpret_cast<const char*>(bytes) + 2, length});
}

}  // namespace

FlowKey FlowOfCaller(const Grant* grant,
                     const grpc::ServerContextBase& context) {
  // By its name: the header may be spelt in many ways.
  if (grant != nullptr && !AuthorizationOf(context).empty()) {
    return {HashOf(grant->name), 0};
  }
  return {HashOf(context.peer()), 0};
}

FlowKey FlowOfCatalog(const Grant* grant,
                      const grpc::ServerContextBase& context,
                      const grpc::ByteBuffer& request) {
  FlowKey flow = FlowOfCaller(grant, context);
  grpc::Slice slice;
  if (request.TrySingleSlice(&slice).ok()) {
    flow.catalog = HashOfFirstField(slice);
    return flow;
  }
  // A large request.
  std::vector<grpc::Slice> slices;
  if (request.Dump(&slices).ok() && !slices.empty()) {
    flow.catalog = HashOfFirstField(slices[0]);
  }
  return flow;
}

}  // namespace attendant
