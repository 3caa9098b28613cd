// Calls every RPC that a server offers, found by reflection and descriptors,
// with tokens: a new RPC cannot be forgotten.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "service/calls/methods.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/service/raw_call.h"
#include "tests/service/secure_server.h"
#include "tests/service/security/rpc_roles.h"

namespace attendant {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::MethodDescriptor;
using ::google::protobuf::Reflection;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr char kHealthService[] = "grpc.health.v1.Health";
constexpr char kReflectionService[] =
    "grpc.reflection.v1alpha.ServerReflection";
constexpr char kReflectionMethod[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// A catalog in scope, and one out of scope.
constexpr char kInside[] = "films";
constexpr char kOutside[] = "shop";

// Fields that contain names but select nothing: one is compared with the
// current state, and the others must be empty or equal the batch's.
constexpr const char* kNamesNothing[] = {
    "attendant.v1.SetAliasRequest.expected_catalog",
    "attendant.v1.BatchAttendRequest.requests"};
// Methods whose requests name no catalog: the first ones list what is in scope;
// the others are for models, which belong to no catalog.
constexpr const char* kWithoutCatalog[] = {"ListCatalogs", "ListAliases",
                                           "GetModel",     "ListModels",
                                           "CreateModel",  "DeleteModel"};

// The path from a request to a field that names a catalog or alias.
using Path = std::vector<const FieldDescriptor*>;

bool IsAmong(const std::string& name, std::span<const char* const> names) {
  return absl::c_linear_search(names, name);
}

bool NamesCatalog(const FieldDescriptor& field) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return false;
  const std::string& message = field.containing_type()->name();
  return field.name() == "catalog" || field.name() == "alias" ||
         absl::EndsWith(field.name(), "_catalog") ||
         (field.name() == "name" && absl::EndsWith(message, "CatalogRequest"));
}

void AddPaths(const Descriptor& type, Path& above, std::vector<Path>& paths) {
  constexpr std::size_t kDepth = 4;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (IsAmong(field->full_name(), kNamesNothing)) continue;
    above.push_back(field);
    if (NamesCatalog(*field)) paths.push_back(above);
    if (field->message_type() != nullptr && !field->is_map() &&
        above.size() < kDepth) {
      AddPaths(*field->message_type(), above, paths);
    }
    above.pop_back();
  }
}

std::vector<Path> PathsToNames(const MethodDescriptor& method) {
  Path above;
  std::vector<Path> paths;
  AddPaths(*method.input_type(), above, paths);
  return paths;
}

void Set(Message* message, const Path& path, const std::string& name) {
  for (const FieldDescriptor* field : path) {
    const Reflection& reflection = *message->GetReflection();
    if (field->message_type() == nullptr) {
      reflection.SetString(message, field, name);
    } else if (field->is_repeated()) {
      message = reflection.FieldSize(*message, field) > 0
                    ? reflection.MutableRepeatedMessage(message, field, 0)
                    : reflection.AddMessage(message, field);
    } else {
      message = reflection.MutableMessage(message, field);
    }
  }
}

// Builds a request whose names are all kInside except for one; -1: all are.
std::string RequestBytes(const MethodDescriptor& method, int outside) {
  const std::unique_ptr<Message> request = NewMessage(method.input_type());
  const std::vector<Path> paths = PathsToNames(method);
  for (int i = 0; i < static_cast<int>(paths.size()); ++i) {
    Set(request.get(), paths[i], i == outside ? kOutside : kInside);
  }
  return request->SerializeAsString();
}

std::vector<const MethodDescriptor*> AllRpcs() {
  std::vector<const MethodDescriptor*> rpcs;
  for (const Method& method : AllMethods()) {
    rpcs.push_back(DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrCat(method.service, ".", method.name)));
  }
  return rpcs;
}

class EveryRpcTest : public SecureServer {
 protected:
  void SetUp() override {
    SecureServer::SetUp();
    AddToken("read", Role::kRead, "*");
    AddToken("write", Role::kWrite, "*");
    AddToken("admin", Role::kAdmin, "*");
    AddToken("inside", Role::kAdmin, kInside);
    WriteTokens();
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    return grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  }

  // Makes a call that sends one message, and returns its status; without a
  // token if none has that name.
  grpc::Status Call(const std::string& token, const std::string& path,
                    const std::string& bytes) {
    const auto found = tokens_.find(token);
    RawCall call(channel_, path, found == tokens_.end() ? "" : found->second);
    call.Write(bytes);
    call.WritesDone();
    while (call.Read().has_value()) {
    }
    return call.Finish();
  }
  grpc::StatusCode CodeOf(const std::string& token,
                          const MethodDescriptor& method) {
    return Call(token, RpcPath(method), RequestBytes(method, -1)).error_code();
  }

  std::vector<std::string> ServedServices() {
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    const std::string package = "grpc.reflection.v1alpha.";
    const auto request = NewMessage(
        pool.FindMessageTypeByName(package + "ServerReflectionRequest"));
    request->GetReflection()->SetString(
        request.get(),
        request->GetDescriptor()->FindFieldByName("list_services"), "*");
    RawCall call(channel_, kReflectionMethod, tokens_["admin"]);
    call.Write(request->SerializeAsString());
    const auto response = NewMessage(
        pool.FindMessageTypeByName(package + "ServerReflectionResponse"));
    EXPECT_TRUE(response->ParseFromString(call.Read().value_or("")));
    const auto field = [](const Message& message, const char* name) {
      return message.GetDescriptor()->FindFieldByName(name);
    };
    const Message& list = response->GetReflection()->GetMessage(
        *response, field(*response, "list_services_response"));
    const FieldDescriptor* services = field(list, "service");
    std::vector<std::string> names;
    for (int i = 0; i < list.GetReflection()->FieldSize(list, services); ++i) {
      const Message& service =
          list.GetReflection()->GetRepeatedMessage(list, services, i);
      names.push_back(
          service.GetReflection()->GetString(service, field(service, "name")));
    }
    return names;
  }

  void StartServer() {
    ASSERT_OK(Start());
    channel_ = NewChannel();
  }

  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(EveryRpcTest, IsOfAServiceThatIsKnown) {
  StartServer();
  std::vector<std::string> known = {kHealthService, kReflectionService};
  for (const MethodDescriptor* method : AllRpcs()) {
    ASSERT_NE(method, nullptr);
    const std::string& service = method->service()->full_name();
    if (!absl::c_linear_search(known, service)) known.push_back(service);
  }
  EXPECT_THAT(ServedServices(), UnorderedElementsAreArray(known));
  // All methods of each service, too.
  for (std::size_t i = 2; i < known.size(); ++i) {
    const auto* service =
        DescriptorPool::generated_pool()->FindServiceByName(known[i]);
    for (int j = 0; j < service->method_count(); ++j) {
      EXPECT_THAT(AllRpcs(), Contains(service->method(j)));
    }
  }
}

TEST_F(EveryRpcTest, WantsATokenWithItsRole) {
  StartServer();
  ASSERT_GE(AllRpcs().size(), 32U);
  tokens_["wrong"] = "read.wrong";
  for (const MethodDescriptor* method : AllRpcs()) {
    SCOPED_TRACE(method->full_name());
    EXPECT_EQ(CodeOf("", *method), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(CodeOf("wrong", *method), grpc::StatusCode::UNAUTHENTICATED);
    const Role needed = RoleByName(*method);
    for (const Role role : {Role::kRead, Role::kWrite}) {
      const std::string name(RoleName(role));
      const grpc::StatusCode code = CodeOf(name, *method);
      if (role < needed) {
        EXPECT_EQ(code, grpc::StatusCode::PERMISSION_DENIED) << name;
      } else {
        EXPECT_NE(code, grpc::StatusCode::PERMISSION_DENIED) << name;
        EXPECT_NE(code, grpc::StatusCode::UNAUTHENTICATED) << name;
      }
    }
  }
}

TEST_F(EveryRpcTest, IsOnlyForReadingWithoutAToken) {
  options_.security.anonymous_read = true;
  StartServer();
  for (const MethodDescriptor* method : AllRpcs()) {
    EXPECT_EQ(CodeOf("", *method) == grpc::StatusCode::PERMISSION_DENIED,
              RoleByName(*method) != Role::kRead)
        << method->full_name();
  }
}

TEST_F(EveryRpcTest, NamesCatalogsOfItsTokenOnly) {
  StartServer();
  for (const MethodDescriptor* method : AllRpcs()) {
    SCOPED_TRACE(method->full_name());
    const int count = static_cast<int>(PathsToNames(*method).size());
    EXPECT_EQ(count == 0, IsAmong(method->name(), kWithoutCatalog));
    for (int i = 0; i < count; ++i) {
      const grpc::Status status =
          Call("inside", RpcPath(*method), RequestBytes(*method, i));
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << i;
      EXPECT_THAT(status.error_message(), HasSubstr("got \"shop\"")) << i;
    }
    // Models are visible to all, but only an administrator of all catalogs may
    // change them.
    EXPECT_EQ(
        CodeOf("inside", *method) == grpc::StatusCode::PERMISSION_DENIED,
        method->name() == "CreateModel" || method->name() == "DeleteModel");
    EXPECT_NE(CodeOf("inside", *method), grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST_F(EveryRpcTest, OnlyThoseOfHealthAreOpen) {
  StartServer();
  EXPECT_TRUE(Call("", "/grpc.health.v1.Health/Check", "").ok());
  {
    RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
    watch.Write("");
    EXPECT_TRUE(watch.Read().has_value());
  }
  EXPECT_EQ(Call("", kReflectionMethod, "").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(Call("read", kReflectionMethod, "").ok());
  for (const char* path : {"/grpc.health.v2.Health/Check", "/x/y", "/"}) {
    EXPECT_EQ(Call("", path, "").error_code(),
              grpc::StatusCode::UNAUTHENTICATED)
        << path;
  }
}

}  // namespace
}  // namespace attendant
