// One function for each unary method: validate, call core, convert.
//
// All are thread-safe and, like core, stop early when `interrupt` says so. The
// response is not used after an error. Errors are those documented in the proto
// files and in core. Lists contain only what `scope` holds, and their page
// tokens are bound to that scope.
#ifndef ATTENDANT_SERVICE_HANDLERS_HANDLERS_H_
#define ATTENDANT_SERVICE_HANDLERS_HANDLERS_H_

#include "absl/status/status.h"
#include "attendant/v1/alias_service.pb.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/base/interrupt.h"
#include "service/calls/backend.h"
#include "service/security/access.h"

namespace attendant {

absl::Status CreateCatalog(Backend& backend,
                           const v1::CreateCatalogRequest& request,
                           const Interrupt& interrupt,
                           v1::CreateCatalogResponse* response);
// Adds a warning for each key field whose attention is close to an average; see
// attention_warning.h.
absl::Status GetCatalog(Backend& backend, const v1::GetCatalogRequest& request,
                        const Interrupt& interrupt,
                        v1::GetCatalogResponse* response);
absl::Status ListCatalogs(Backend& backend, const CatalogScope& scope,
                          const v1::ListCatalogsRequest& request,
                          const Interrupt& interrupt,
                          v1::ListCatalogsResponse* response);
absl::Status UpdateCatalog(Backend& backend,
                           const v1::UpdateCatalogRequest& request,
                           const Interrupt& interrupt,
                           v1::UpdateCatalogResponse* response);
// The error does not name an alias that blocks the deletion unless `scope`
// holds all catalogs.
absl::Status DeleteCatalog(Backend& backend, const CatalogScope& scope,
                           const v1::DeleteCatalogRequest& request,
                           const Interrupt& interrupt,
                           v1::DeleteCatalogResponse* response);

absl::Status SetAlias(Backend& backend, const CatalogScope& scope,
                      const v1::SetAliasRequest& request,
                      const Interrupt& interrupt,
                      v1::SetAliasResponse* response);
absl::Status GetAlias(Backend& backend, const v1::GetAliasRequest& request,
                      const Interrupt& interrupt,
                      v1::GetAliasResponse* response);
absl::Status ListAliases(Backend& backend, const CatalogScope& scope,
                         const v1::ListAliasesRequest& request,
                         const Interrupt& interrupt,
                         v1::ListAliasesResponse* response);
absl::Status DeleteAlias(Backend& backend,
                         const v1::DeleteAliasRequest& request,
                         const Interrupt& interrupt,
                         v1::DeleteAliasResponse* response);

absl::Status BatchUpsertItems(Backend& backend,
                              const v1::BatchUpsertItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchUpsertItemsResponse* response);
absl::Status BatchGetItems(Backend& backend,
                           const v1::BatchGetItemsRequest& request,
                           const Interrupt& interrupt,
                           v1::BatchGetItemsResponse* response);
// A page ends early if the reply would not fit into a message.
absl::Status ListItems(Backend& backend, const v1::ListItemsRequest& request,
                       const Interrupt& interrupt,
                       v1::ListItemsResponse* response);
absl::Status BatchDeleteItems(Backend& backend,
                              const v1::BatchDeleteItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchDeleteItemsResponse* response);

absl::Status BatchUpdateItems(Backend& backend,
                              const v1::BatchUpdateItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchUpdateItemsResponse* response);
absl::Status DeleteMatchingItems(Backend& backend,
                                 const v1::DeleteMatchingItemsRequest& request,
                                 const Interrupt& interrupt,
                                 v1::DeleteMatchingItemsResponse* response);

absl::Status CreateModel(Backend& backend,
                         const v1::CreateModelRequest& request,
                         const Interrupt& interrupt,
                         v1::CreateModelResponse* response);
absl::Status GetModel(Backend& backend, const v1::GetModelRequest& request,
                      const Interrupt& interrupt,
                      v1::GetModelResponse* response);
absl::Status ListModels(Backend& backend, const v1::ListModelsRequest& request,
                        const Interrupt& interrupt,
                        v1::ListModelsResponse* response);
absl::Status DeleteModel(Backend& backend,
                         const v1::DeleteModelRequest& request,
                         const Interrupt& interrupt,
                         v1::DeleteModelResponse* response);

// See attend_call.h for Attend.
absl::Status BatchAttend(Backend& backend,
                         const v1::BatchAttendRequest& request,
                         const Interrupt& interrupt,
                         v1::BatchAttendResponse* response);

// Refuses replies larger than a message before they are built.
absl::Status Contextualize(Backend& backend,
                           const v1::ContextualizeRequest& request,
                           const Interrupt& interrupt,
                           v1::ContextualizeResponse* response);
absl::Status RankCandidates(Backend& backend,
                            const v1::RankCandidatesRequest& request,
                            const Interrupt& interrupt,
                            v1::RankCandidatesResponse* response);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HANDLERS_HANDLERS_H_
