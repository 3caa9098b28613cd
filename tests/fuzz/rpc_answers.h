// Answers of any RPC, and what holds for all of them.
#ifndef ATTENDANT_TESTS_FUZZ_RPC_ANSWERS_H_
#define ATTENDANT_TESTS_FUZZ_RPC_ANSWERS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/channel.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/attention_service.pb.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/service/raw_call.h"

namespace attendant {

struct RpcAnswer {
  grpc::Status status;
  std::vector<std::string> replies;
};

// Sends one message and reads all replies.
inline RpcAnswer CallRpc(const std::shared_ptr<grpc::Channel>& channel,
                         const google::protobuf::MethodDescriptor& method,
                         const std::string& bytes) {
  RawCall call(channel, RpcPath(method));
  call.Write(bytes);
  call.WritesDone();
  RpcAnswer answer;
  while (auto reply = call.Read()) answer.replies.push_back(*std::move(reply));
  answer.status = call.Finish();
  return answer;
}

// Requires that no float of the message is NaN.
inline void RequireNumbers(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count =
        field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          RequireNumbers(many
                             ? reflection->GetRepeatedMessage(message, field, i)
                             : reflection->GetMessage(message, field));
          break;
        case FieldDescriptor::CPPTYPE_FLOAT:
          Require(
              !std::isnan(many ? reflection->GetRepeatedFloat(message, field, i)
                               : reflection->GetFloat(message, field)),
              field->full_name() + " is a number");
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          Require(!std::isnan(
                      many ? reflection->GetRepeatedDouble(message, field, i)
                           : reflection->GetDouble(message, field)),
                  field->full_name() + " is a number");
          break;
        default:
          break;
      }
    }
  }
}

// Requires of softmax weights that they are in [0, 1] and sum to at most 1.
inline void CheckWeights(const v1::AttendResponse& response) {
  if (response.activation_kind() != v1::ACTIVATION_KIND_SOFTMAX) return;
  double sum = 0;
  for (const v1::AttendedItem& item : response.items()) {
    Require(item.weight() >= 0 && item.weight() <= 1 + 1e-5,
            "weights are in [0, 1]");
    sum += item.weight();
  }
  // Each draw has its own weight.
  if (response.has_slate()) return;
  Require(sum <= 1 + 1e-4, "weights sum to at most 1");
}

// Statuses that a request can cause by itself.
inline bool IsRefusal(const google::protobuf::MethodDescriptor& method,
                      grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
      return true;
    case grpc::StatusCode::DATA_LOSS:
      return method.name() == "ImportSnapshot";
    default:
      return false;
  }
}

// Requires that all replies are messages without NaN, and that a failure blames
// the caller.
inline void CheckAnswer(const google::protobuf::MethodDescriptor& method,
                        const RpcAnswer& answer) {
  for (const std::string& bytes : answer.replies) {
    const auto reply = NewMessage(method.output_type());
    Require(reply->ParseFromString(bytes), "replies are messages");
    RequireNumbers(*reply);
    if (const auto* response =
            dynamic_cast<const v1::AttendResponse*>(reply.get())) {
      CheckWeights(*response);
    }
  }
  Require(
      answer.status.ok() || (IsRefusal(method, answer.status.error_code()) &&
                             !answer.status.error_message().empty()),
      absl::StrCat(method.name(), ": ", answer.status.error_code(), " ",
                   answer.status.error_message()));
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_FUZZ_RPC_ANSWERS_H_
