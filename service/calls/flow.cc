#include "service/calls/flow.h"

#include <cstddef>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "service/calls/authorize.h"

namespace attendant {
namespace {

// Tag of field 1, length-delimited.
constexpr std::uint8_t kFirstFieldTag = (1 << 3) | 2;
// Maximum length encoded in one byte; names of catalogs are shorter.
constexpr std::uint8_t kMaxLength = 127;

std::uint64_t HashOf(absl::string_view text) {
  return absl::Hash<absl::string_view>()(text);
}

// Returns the first field; empty if it is a different one. Valid as long as the
// slice.
absl::string_view FirstFieldOf(const grpc::Slice& slice) {
  const std::uint8_t* bytes = slice.begin();
  if (slice.size() < 2 || bytes[0] != kFirstFieldTag) return {};
  const std::size_t length = bytes[1];
  if (length > kMaxLength || slice.size() < 2 + length) return {};
  return {reinterpret_cast<const char*>(bytes) + 2, length};
}

std::uint64_t HashOfCatalog(absl::string_view name,
                            const CatalogSet* catalogs) {
  return catalogs == nullptr ? HashOf(name) : HashOf(catalogs->Resolve(name));
}

}  // namespace

FlowKey FlowOfCaller(const Grant* grant,
                     const grpc::ServerContextBase& context) {
  // Uses the token's name, because the same token can be written in different
  // headers.
  if (grant != nullptr && !AuthorizationOf(context).empty()) {
    return {HashOf(grant->name), 0};
  }
  return {HashOf(context.peer()), 0};
}

FlowKey FlowOfCatalog(const Grant* grant,
                      const grpc::ServerContextBase& context,
                      const grpc::ByteBuffer& request,
                      const CatalogSet* catalogs) {
  FlowKey flow = FlowOfCaller(grant, context);
  grpc::Slice slice;
  if (!request.TrySingleSlice(&slice).ok()) {
    // A large request, in several slices.
    std::vector<grpc::Slice> slices;
    if (request.Dump(&slices).ok() && !slices.empty()) slice = slices[0];
  }
  flow.catalog = HashOfCatalog(FirstFieldOf(slice), catalogs);
  return flow;
}

}  // namespace attendant
