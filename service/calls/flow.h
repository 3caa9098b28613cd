// Whose a request is, for fairness.
#ifndef ATTENDANT_SERVICE_CALLS_FLOW_H_
#define ATTENDANT_SERVICE_CALLS_FLOW_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include "attendant/v1/catalog_service.pb.h"
#include "core/catalog/live/catalog_set.h"
#include "service/queue/work.h"
#include "service/security/access.h"

namespace attendant {

// True of requests whose first field is the name of a catalog.
template <typename Request>
inline constexpr bool kNamesCatalog = requires {
  requires Request::kCatalogFieldNumber == 1;
};
template <>
inline constexpr bool kNamesCatalog<v1::CreateCatalogRequest> = true;
template <>
inline constexpr bool kNamesCatalog<v1::GetCatalogRequest> = true;
template <>
inline constexpr bool kNamesCatalog<v1::UpdateCatalogRequest> = true;
template <>
inline constexpr bool kNamesCatalog<v1::DeleteCatalogRequest> = true;

// The caller is the token of the call, where tokens are asked for and it has
// one, and else the connection that it came by. `grant` is FindGrant's.
FlowKey FlowOfCaller(const Grant* grant,
                     const grpc::ServerContextBase& context);

// The same, and the catalog that `request`, of a message with kNamesCatalog,
// begins with: read from its first bytes, as every serialiser writes them.
// Requests that have it elsewhere are of one catalog together. With `catalogs`
// an alias is its catalog, where the turns of one are counted
// (WorkQueue::Options::most_of_catalog). Bytes that no serialiser writes, such
// as two names of which the last holds, are taken for another catalog: that is
// only less fair.
FlowKey FlowOfCatalog(const Grant* grant,
                      const grpc::ServerContextBase& context,
                      const grpc::ByteBuffer& request,
                      const CatalogSet* catalogs = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_FLOW_H_
