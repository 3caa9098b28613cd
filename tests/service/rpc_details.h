// Reads the machine-readable details of a status.
#ifndef ATTENDANT_TESTS_SERVICE_RPC_DETAILS_H_
#define ATTENDANT_TESTS_SERVICE_RPC_DETAILS_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace attendant {

// Parses grpc-status-details-bin; returns an empty status if it is absent or
// does not parse.
inline google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) details.Clear();
  return details;
}

// Returns all details of type Message.
template <typename Message>
std::vector<Message> Details(const google::rpc::Status& status) {
  std::vector<Message> found;
  for (const google::protobuf::Any& detail : status.details()) {
    Message message;
    if (detail.Is<Message>() && detail.UnpackTo(&message)) {
      found.push_back(message);
    }
  }
  return found;
}

// Returns the field that BadRequest names, or "".
inline std::string FieldIn(const google::rpc::Status& status) {
  const auto found = Details<google::rpc::BadRequest>(status);
  if (found.size() != 1 || found[0].field_violations_size() != 1) return "";
  return found[0].field_violations(0).field();
}

// Returns the reason of the only ErrorInfo, or "".
inline std::string ReasonIn(const google::rpc::Status& status) {
  const auto found = Details<google::rpc::ErrorInfo>(status);
  return found.size() == 1 ? found[0].reason() : "";
}

// Returns the value of `name` in the metadata of the only ErrorInfo, or "".
inline std::string MetadataIn(const grpc::Status& status,
                              const std::string& name) {
  const auto found = Details<google::rpc::ErrorInfo>(DetailsOf(status));
  if (found.size() != 1) return "";
  const auto value = found[0].metadata().find(name);
  return value == found[0].metadata().end() ? "" : value->second;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_RPC_DETAILS_H_
