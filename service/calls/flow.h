// Determines whose flow a request belongs to, for fair queueing.
#ifndef ATTENDANT_SERVICE_CALLS_FLOW_H_
#define ATTENDANT_SERVICE_CALLS_FLOW_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include "attendant/v1/catalog_service.pb.h"
#include "core/catalog/live/catalog_set.h"
#include "service/queue/work.h"
#include "service/security/access.h"

namespace attendant {

// True for request types whose first field is the name of a catalog.
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

// Returns the flow of the caller: the call's token, if tokens are required and
// it has one; otherwise its connection. `grant` is the result of FindGrant.
FlowKey FlowOfCaller(const Grant* grant,
                     const grpc::ServerContextBase& context);

// Like FlowOfCaller, but also distinguishes the catalog that `request`, a
// serialised message with kNamesCatalog, begins with. The name is read from the
// first bytes, where every serialiser writes it; all requests that have it
// elsewhere share one catalog.
//
// If `catalogs` is given, an alias is resolved to its catalog, for queues with
// WorkQueue::Options::max_turns_of_catalog. Bytes that no serialiser writes,
// such as two names of which the last is valid, are attributed to a different
// catalog, which only makes queueing less fair.
FlowKey FlowOfCatalog(const Grant* grant,
                      const grpc::ServerContextBase& context,
                      const grpc::ByteBuffer& request,
                      const CatalogSet* catalogs = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_FLOW_H_
