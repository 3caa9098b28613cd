#include "service/calls/methods.h"

#include <google/protobuf/descriptor.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "attendant/v1/alias_service.pb.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/catalog_service.pb.h"
#include "attendant/v1/item_service.pb.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "attendant/v1/snapshot_service.pb.h"

namespace attendant {
namespace {

std::string TypeOf(const google::protobuf::MethodDescriptor& method) {
  if (method.client_streaming()) {
    return method.server_streaming() ? "bidi_stream" : "client_stream";
  }
  return method.server_streaming() ? "server_stream" : "unary";
}

// True for services with queries; all of their methods are unary.
bool HoldsQueries(const google::protobuf::ServiceDescriptor& service) {
  return service.name() == "AttentionService" ||
         service.name() == "SequenceService";
}

// Each proto file defines one service.
std::vector<Method> ListMethods() {
  std::vector<Method> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::AttendRequest::descriptor()->file(),
        v1::Alias::descriptor()->file(), v1::Catalog::descriptor()->file(),
        v1::Item::descriptor()->file(),
        v1::ContextualizeRequest::descriptor()->file(),
        v1::GetModelRequest::descriptor()->file(),
        v1::GetSnapshotRequest::descriptor()->file()}) {
    const google::protobuf::ServiceDescriptor& service = *file->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service.method(i);
      methods.push_back({service.full_name(), method.name(), TypeOf(method),
                         HoldsQueries(service), methods.size()});
    }
  }
  return methods;
}

}  // namespace

std::span<const Method> AllMethods() {
  static const auto& methods = *new std::vector<Method>(ListMethods());
  return methods;
}

const Method& FindMethod(absl::string_view name) {
  for (const Method& method : AllMethods()) {
    if (method.name == name) return method;
  }
  std::abort();
}

}  // namespace attendant
