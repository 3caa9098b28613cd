// Requests of any RPC, looked up by name.
#ifndef ATTENDANT_TESTS_FUZZ_RPC_REQUESTS_H_
#define ATTENDANT_TESTS_FUZZ_RPC_REQUESTS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "service/calls/methods.h"
#include "tests/fuzz/fuzz.h"

namespace attendant {

// Returns the method of that name in any service; null if there is none.
inline const google::protobuf::MethodDescriptor* FindRpc(
    absl::string_view name) {
  for (const Method& method : AllMethods()) {
    if (method.name != name) continue;
    return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrCat(method.service, ".", method.name));
  }
  return nullptr;
}

inline std::string RpcPath(const google::protobuf::MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

inline std::unique_ptr<google::protobuf::Message> NewMessage(
    const google::protobuf::Descriptor* type) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(type)
          ->New());
}

// Serialises a request given as text-format proto.
inline std::string RpcBytes(absl::string_view name, const std::string& text) {
  const auto* method = FindRpc(name);
  Require(method != nullptr, "there is such a method");
  const auto request = NewMessage(method->input_type());
  Require(google::protobuf::TextFormat::ParseFromString(text, request.get()),
          text);
  return request->SerializeAsString();
}

// A seed of the corpus, or a request that sets up the server for one.
struct RpcRequest {
  absl::string_view method;
  const char* text;
};

// State that rpc_fuzz's server has before each input.
inline constexpr RpcRequest kRpcWorld[] = {
    {"CreateModel", R"pb(
       model {
         name: "m"
         bilinear {
           weight {
             row_count: 2
             column_count: 2
             float32_le: "\000\000\200?\000\000\000\000\000\000\000\000\000\000\200?"
           }
         }
       })pb"},
    {"CreateCatalog", R"pb(
       name: "shop"
       schema {
         key_fields { name: "k" dimension: 2 }
         key_fields { name: "cos" dimension: 2 score_kind: SCORE_KIND_COSINE }
         value_dimension: 2
         attributes { name: "price" type: ATTRIBUTE_TYPE_DOUBLE }
         attributes { name: "name" type: ATTRIBUTE_TYPE_STRING }
         attributes { name: "stock" type: ATTRIBUTE_TYPE_INT64 }
         attributes { name: "tags" type: ATTRIBUTE_TYPE_STRING_LIST }
         attributes { name: "listed" type: ATTRIBUTE_TYPE_TIMESTAMP }
         attributes { name: "on_sale" type: ATTRIBUTE_TYPE_BOOL }
       }
       text_encoders {
         key_field: "k"
         terms: "alarm"
         terms: "#al"
         idf: 1
         idf: 2
         projection_float32_le: "\000\000\200?\000\000\000\000\000\000\000\000\000\000\200?"
       })pb"},
    {"BatchUpsertItems", R"pb(
       catalog: "shop"
       items {
         id: "a"
         keys {
           key: "k"
           value { floats { values: [ 1, 0 ] } }
         }
         keys {
           key: "cos"
           value { floats { values: [ 1, 2 ] } }
         }
         value { floats { values: [ 1, 2 ] } }
         attributes {
           key: "price"
           value { double_value: 1.5 }
         }
         attributes {
           key: "name"
           value { string_value: "Anna" }
         }
         attributes {
           key: "listed"
           value { timestamp_value { seconds: 5 } }
         }
       }
       items {
         id: "b"
         keys {
           key: "k"
           value { floats { values: [ 0, 1 ] } }
         }
         attributes {
           key: "price"
           value { double_value: 2.5 }
         }
         attributes {
           key: "stock"
           value { int64_value: 7 }
         }
       }
       items {
         id: "c"
         keys {
           key: "k"
           value { floats { values: [ 1, 1 ] } }
         }
         opaque_value: "\000\377"
       })pb"},
    {"SetAlias", "alias: 'best' catalog: 'shop'"},
    {"CreateSnapshot", "catalog: 'shop' name: 's'"},
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_RPC_REQUESTS_H_
