#include "service/services.h"

#include "attendant/v1/alias_service.grpc.pb.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/sequence_service.grpc.pb.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "service/attend_call.h"
#include "service/handlers.h"
#include "service/import_call.h"
#include "service/long_call.h"
#include "service/snapshot_calls.h"
#include "service/snapshot_handlers.h"
#include "service/unary_call.h"

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

class RawCatalogService final
    : public RawCatalogMethods<v1::CatalogService::Service> {
 public:
  RawCatalogService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* CreateCatalog(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "CreateCatalog",
                          &attendant::CreateCatalog, context, request,
                          response);
  }
  ServerUnaryReactor* GetCatalog(CallbackServerContext* context,
                                 const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "GetCatalog",
                          &attendant::GetCatalog, context, request, response);
  }
  ServerUnaryReactor* ListCatalogs(CallbackServerContext* context,
                                   const ByteBuffer* request,
                                   ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "ListCatalogs",
                          &attendant::ListCatalogs, context, request, response);
  }
  ServerUnaryReactor* UpdateCatalog(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "UpdateCatalog",
                          &attendant::UpdateCatalog, context, request,
                          response);
  }
  ServerUnaryReactor* DeleteCatalog(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "DeleteCatalog",
                          &attendant::DeleteCatalog, context, request,
                          response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawAliasService final
    : public RawAliasMethods<v1::AliasService::Service> {
 public:
  RawAliasService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* SetAlias(CallbackServerContext* context,
                               const ByteBuffer* request,
                               ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "SetAlias",
                          &attendant::SetAlias, context, request, response);
  }
  ServerUnaryReactor* GetAlias(CallbackServerContext* context,
                               const ByteBuffer* request,
                               ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "GetAlias",
                          &attendant::GetAlias, context, request, response);
  }
  ServerUnaryReactor* ListAliases(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "ListAliases",
                          &attendant::ListAliases, context, request, response);
  }
  ServerUnaryReactor* DeleteAlias(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "DeleteAlias",
                          &attendant::DeleteAlias, context, request, response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawItemService final : public RawItemMethods<v1::ItemService::Service> {
 public:
  RawItemService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* BatchUpsertItems(CallbackServerContext* context,
                                       const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "BatchUpsertItems",
                          &attendant::BatchUpsertItems, context, request,
                          response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* ImportItems(
      CallbackServerContext* context) override {
    return ImportCall::Start(backend_, *pools_.write, *context);
  }
  ServerUnaryReactor* BatchGetItems(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "BatchGetItems",
                          &attendant::BatchGetItems, context, request,
                          response);
  }
  ServerUnaryReactor* ListItems(CallbackServerContext* context,
                                const ByteBuffer* request,
                                ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "ListItems",
                          &attendant::ListItems, context, request, response);
  }
  ServerUnaryReactor* BatchDeleteItems(CallbackServerContext* context,
                                       const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "BatchDeleteItems",
                          &attendant::BatchDeleteItems, context, request,
                          response);
  }
  ServerUnaryReactor* BatchUpdateItems(CallbackServerContext* context,
                                       const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "BatchUpdateItems",
                          &attendant::BatchUpdateItems, context, request,
                          response);
  }
  ServerUnaryReactor* DeleteMatchingItems(CallbackServerContext* context,
                                          const ByteBuffer* request,
                                          ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "DeleteMatchingItems",
                          &attendant::DeleteMatchingItems, context, request,
                          response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawModelService final
    : public RawModelMethods<v1::ModelService::Service> {
 public:
  RawModelService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* CreateModel(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "CreateModel",
                          &attendant::CreateModel, context, request, response);
  }
  ServerUnaryReactor* GetModel(CallbackServerContext* context,
                               const ByteBuffer* request,
                               ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "GetModel",
                          &attendant::GetModel, context, request, response);
  }
  ServerUnaryReactor* ListModels(CallbackServerContext* context,
                                 const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "ListModels",
                          &attendant::ListModels, context, request, response);
  }
  ServerUnaryReactor* DeleteModel(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.write, "DeleteModel",
                          &attendant::DeleteModel, context, request, response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawAttentionService final
    : public RawAttentionMethods<v1::AttentionService::Service> {
 public:
  RawAttentionService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* Attend(CallbackServerContext* context,
                             const ByteBuffer* request,
                             ByteBuffer* response) override {
    return StartAttendCall(backend_, *pools_.attend, context, request,
                           response);
  }
  ServerUnaryReactor* BatchAttend(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.attend, "BatchAttend",
                          &attendant::BatchAttend, context, request, response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawSequenceService final
    : public RawSequenceMethods<v1::SequenceService::Service> {
 public:
  RawSequenceService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  ServerUnaryReactor* Contextualize(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall<v1::ContextualizeRequest, v1::ContextualizeResponse>(
        backend_, *pools_.attend, "Contextualize", &attendant::Contextualize,
        context, request, response);
  }
  ServerUnaryReactor* RankCandidates(CallbackServerContext* context,
                                     const ByteBuffer* request,
                                     ByteBuffer* response) override {
    return StartUnaryCall<v1::RankCandidatesRequest,
                          v1::RankCandidatesResponse>(
        backend_, *pools_.attend, "RankCandidates", &attendant::RankCandidates,
        context, request, response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

class RawSnapshotService final
    : public RawSnapshotMethods<v1::SnapshotService::Service> {
 public:
  RawSnapshotService(Backend& backend, const WorkerPools& pools)
      : backend_(backend), pools_(pools) {}

  grpc::ServerWriteReactor<ByteBuffer>* CreateSnapshot(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return LongCall<v1::CreateSnapshotRequest, v1::CreateSnapshotResponse>::
        Start(backend_, *pools_.long_work, "CreateSnapshot",
              &attendant::CreateSnapshot, *context, *request);
  }
  ServerUnaryReactor* GetSnapshot(CallbackServerContext* context,
                                  const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "GetSnapshot",
                          &attendant::GetSnapshot, context, request, response);
  }
  ServerUnaryReactor* ListSnapshots(CallbackServerContext* context,
                                    const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.read, "ListSnapshots",
                          &attendant::ListSnapshots, context, request,
                          response);
  }
  grpc::ServerWriteReactor<ByteBuffer>* VerifySnapshot(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return LongCall<v1::VerifySnapshotRequest, v1::VerifySnapshotResponse>::
        Start(backend_, *pools_.long_work, "VerifySnapshot",
              &attendant::VerifySnapshot, *context, *request);
  }
  grpc::ServerWriteReactor<ByteBuffer>* RestoreSnapshot(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return LongCall<v1::RestoreSnapshotRequest, v1::RestoreSnapshotResponse>::
        Start(backend_, *pools_.long_work, "RestoreSnapshot",
              &attendant::RestoreSnapshot, *context, *request);
  }
  ServerUnaryReactor* DeleteSnapshot(CallbackServerContext* context,
                                     const ByteBuffer* request,
                                     ByteBuffer* response) override {
    return StartUnaryCall(backend_, *pools_.long_work, "DeleteSnapshot",
                          &attendant::DeleteSnapshot, context, request,
                          response);
  }
  grpc::ServerWriteReactor<ByteBuffer>* ExportSnapshot(
      CallbackServerContext* context, const ByteBuffer* request) override {
    return ExportCall::Start(backend_, *pools_.long_work, *context, *request);
  }
  grpc::ServerReadReactor<ByteBuffer>* ImportSnapshot(
      CallbackServerContext* context, ByteBuffer* response) override {
    return SnapshotImportCall::Start(backend_, *pools_.long_work, *context,
                                     *response);
  }

 private:
  Backend& backend_;
  const WorkerPools pools_;
};

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
