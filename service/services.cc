#include "service/services.h"

#include "attendant/v1/alias_service.grpc.pb.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/sequence_service.grpc.pb.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "service/calls/long_call.h"
#include "service/calls/unary_call.h"
#include "service/handlers/attend_call.h"
#include "service/handlers/handlers.h"
#include "service/handlers/import_call.h"
#include "service/handlers/snapshot_calls.h"
#include "service/handlers/snapshot_handlers.h"

namespace attendant {
namespace {

template <typename Base>
using RawCatalogMethods =
    v1::CatalogService::WithRawCallbackMethod_CreateCatalog<
        v1::CatalogService::WithRawCallbackMethod_GetCatalog<
            v1::CatalogService::WithRawCallbackMethod_ListCatalogs<
                v1::CatalogService::WithRawCallbackMethod_UpdateCatalog<
                    v1::CatalogService::WithRawCallbackMethod_DeleteCatalog<
                        Base>>>>>;

template <typename Base>
using RawAliasMethods = v1::AliasService::WithRawCallbackMethod_SetAlias<
    v1::AliasService::WithRawCallbackMethod_GetAlias<
        v1::AliasService::WithRawCallbackMethod_ListAliases<
            v1::AliasService::WithRawCallbackMethod_DeleteAlias<Base>>>>;

template <typename Base>
using RawItemMethods = v1::ItemService::WithRawCallbackMethod_BatchUpsertItems<
    v1::ItemService::WithRawCallbackMethod_ImportItems<
        v1::ItemService::WithRawCallbackMethod_BatchGetItems<
            v1::ItemService::WithRawCallbackMethod_ListItems<
                v1::ItemService::WithRawCallbackMethod_BatchDeleteItems<
                    v1::ItemService::WithRawCallbackMethod_BatchUpdateItems<
                        v1::ItemService::
                            WithRawCallbackMethod_DeleteMatchingItems<
                                Base>>>>>>>;

template <typename Base>
using RawModelMethods = v1::ModelService::WithRawCallbackMethod_CreateModel<
    v1::ModelService::WithRawCallbackMethod_GetModel<
        v1::ModelService::WithRawCallbackMethod_ListModels<
            v1::ModelService::WithRawCallbackMethod_DeleteModel<Base>>>>;

template <typename Base>
using RawAttentionMethods = v1::AttentionService::WithRawCallbackMethod_Attend<
    v1::AttentionService::WithRawCallbackMethod_BatchAttend<Base>>;

template <typename Base>
using RawSequenceMethods =
    v1::SequenceService::WithRawCallbackMethod_Contextualize<
        v1::SequenceService::WithRawCallbackMethod_RankCandidates<Base>>;

template <typename Base>
using RawSnapshotMethods =
    v1::SnapshotService::WithRawCallbackMethod_CreateSnapshot<
        v1::SnapshotService::WithRawCallbackMethod_GetSnapshot<
            v1::SnapshotService::WithRawCallbackMethod_ListSnapshots<
                v1::SnapshotService::WithRawCallbackMethod_VerifySnapshot<
                    v1::SnapshotService::WithRawCallbackMethod_RestoreSnapshot<
                        v1::SnapshotService::
                            WithRawCallbackMethod_DeleteSnapshot<
                                v1::SnapshotService::
                                    WithRawCallbackMethod_ExportSnapshot<
                                        v1::SnapshotService::
                                            WithRawCallbackMethod_ImportSnapshot<
                                                Base>>>>>>>>;

using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::ServerWriteReactor;

// State shared by the methods of each service.
template <typename Methods>
class Raw : public Methods {
 public:
  Raw(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

 protected:
  Backend& backend_;
  const WorkerPools pools_;
};

// Macros, because a method, its messages and its handler share a name, which
// can't be a template argument. UNARY runs the method on one of the pools; LONG
// runs it on long_work and reports progress.
#define UNARY(Name, pool)                                                   \
  ServerUnaryReactor* Name(CallbackServerContext* context,                  \
                           const ByteBuffer* request, ByteBuffer* response) \
      override {                                                            \
    static const attendant::Method& method = FindMethod(#Name);             \
    return StartUnaryCall<v1::Name##Request, v1::Name##Response>(           \
        backend_, *pools_.pool, method, &attendant::Name, context, request, \
        response);                                                          \
  }
#define LONG(Name)                                                           \
  ServerWriteReactor<ByteBuffer>* Name(CallbackServerContext* context,       \
                                       const ByteBuffer* request) override { \
    static const attendant::Method& method = FindMethod(#Name);              \
    return LongCall<v1::Name##Request, v1::Name##Response>::Start(           \
        backend_, *pools_.long_work, method, &attendant::Name, *context,     \
        *request);                                                           \
  }

class RawCatalogService final
    : public Raw<RawCatalogMethods<v1::CatalogService::Service>> {
 public:
  using Raw::Raw;
  UNARY(CreateCatalog, write)
  UNARY(GetCatalog, read)
  UNARY(ListCatalogs, read)
  UNARY(UpdateCatalog, write)
  UNARY(DeleteCatalog, write)
};

class RawAliasService final
    : public Raw<RawAliasMethods<v1::AliasService::Service>> {
 public:
  using Raw::Raw;
  UNARY(SetAlias, write)
  UNARY(GetAlias, read)
  UNARY(ListAliases, read)
  UNARY(DeleteAlias, write)
};

class RawItemService final
    : public Raw<RawItemMethods<v1::ItemService::Service>> {
 public:
  using Raw::Raw;
  UNARY(BatchUpsertItems, write)
  UNARY(BatchGetItems, read)
  UNARY(ListItems, read)
  UNARY(BatchDeleteItems, write)
  UNARY(BatchUpdateItems, write)
  UNARY(DeleteMatchingItems, sweep)
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ImportItems(
      CallbackServerContext* context) override {
    return ImportCall::Start(backend_, *pools_.write, *context);
  }
};

class RawModelService final
    : public Raw<RawModelMethods<v1::ModelService::Service>> {
 public:
  using Raw::Raw;
  UNARY(CreateModel, write)
  UNARY(GetModel, read)
  UNARY(ListModels, read)
  UNARY(DeleteModel, write)
};

class RawAttentionService final
    : public Raw<RawAttentionMethods<v1::AttentionService::Service>> {
 public:
  using Raw::Raw;
  UNARY(BatchAttend, attend)
  ServerUnaryReactor* Attend(CallbackServerContext* context,
                             const ByteBuffer* request,
                             ByteBuffer* response) override {
    return StartAttendCall(backend_, *pools_.attend, light_queries_, context,
                           request, response);
  }

 private:
  LightQueries light_queries_;
};

class RawSequenceService final
    : public Raw<RawSequenceMethods<v1::SequenceService::Service>> {
 public:
  using Raw::Raw;
  UNARY(Contextualize, attend)
  UNARY(RankCandidates, attend)
};

class RawSnapshotService final
    : public Raw<RawSnapshotMethods<v1::SnapshotService::Service>> {
 public:
  using Raw::Raw;
  LONG(CreateSnapshot)
  LONG(VerifySnapshot)
  LONG(RestoreSnapshot)
  UNARY(GetSnapshot, read)
  UNARY(ListSnapshots, read)
  UNARY(DeleteSnapshot, long_work)
  ServerWriteReactor<ByteBuffer>* ExportSnapshot(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return ExportCall::Start(backend_, *pools_.long_work, *context, *request);
  }
  grpc::ServerReadReactor<ByteBuffer>* ImportSnapshot(
      CallbackServerContext* context, ByteBuffer* response) override {
    return SnapshotImportCall::Start(backend_, *pools_.long_work, *context,
                                     *response);
  }
};

#undef UNARY
#undef LONG

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(
    Backend& backend, const WorkerPools& pools) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<RawCatalogService>(backend, pools));
  services.push_back(std::make_unique<RawAliasService>(backend, pools));
  services.push_back(std::make_unique<RawItemService>(backend, pools));
  services.push_back(std::make_unique<RawModelService>(backend, pools));
  services.push_back(std::make_unique<RawAttentionService>(backend, pools));
  services.push_back(std::make_unique<RawSequenceService>(backend, pools));
  services.push_back(std::make_unique<RawSnapshotService>(backend, pools));
  return services;
}

}  // namespace attendant
