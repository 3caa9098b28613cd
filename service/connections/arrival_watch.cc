#include "service/connections/arrival_watch.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// A property of its connection: gRPC tells them apart in no other way before a
// call has come.
constexpr char kConnection[] = "attendant_connection";
// Those that have gone are among them.
constexpr std::size_t kMostConnections = 1 << 16;

}  // namespace

bool ArrivalWatch::Begin(grpc_auth_context* connection) {
  if (is_counting()) {
    MutexLock lock(&mutex_);
    grpc_auth_property_iterator found =
        grpc_auth_context_find_properties_by_name(connection, kConnection);
    const grpc_auth_property* property =
        grpc_auth_property_iterator_next(&found);
    std::string name;
    if (property != nullptr) {
      name.assign(property->value, property->value_length);
    } else {
      name = absl::StrCat(++next_connection_);
      grpc_auth_context_add_cstring_property(connection, kConnection,
                                             name.c_str());
    }
    if (waiting_counts_.size() >= kMostConnections) waiting_counts_.clear();
    std::int64_t& count = waiting_counts_[name];
    if (count >= kSlack * max_stream_count_) {
      refused_count_.fetch_add(1);
      return false;
    }
    ++count;
  }
  waiting_count_.fetch_add(1);
  return true;
}

void ArrivalWatch::ArriveFrom(const grpc::AuthContext& connection) {
  MutexLock lock(&mutex_);
  const std::vector<grpc::string_ref> names =
      connection.FindPropertyValues(kConnection);
  if (names.empty()) return;
  const auto counted =
      waiting_counts_.find(std::string(names[0].data(), names[0].size()));
  if (counted != waiting_counts_.end() && counted->second > 0) {
    --counted->second;
  }
}

}  // namespace attendant
