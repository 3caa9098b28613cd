#include "service/watches/arrival_watch.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// Connection property: before a call has arrived, gRPC offers no other way to
// tell connections apart.
constexpr char kConnection[] = "attendant_connection";

}  // namespace

std::string ArrivalWatch::NameOf(grpc_auth_context* connection) {
  grpc_auth_property_iterator found =
      grpc_auth_context_find_properties_by_name(connection, kConnection);
  const grpc_auth_property* property = grpc_auth_property_iterator_next(&found);
  if (property != nullptr) return {property->value, property->value_length};
  const std::string name = absl::StrCat(++next_connection_);
  grpc_auth_context_add_cstring_property(connection, kConnection, name.c_str());
  return name;
}

std::string ArrivalWatch::NameOf(const grpc::AuthContext& connection) const {
  const std::vector<grpc::string_ref> names =
      connection.FindPropertyValues(kConnection);
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

absl::Status ArrivalWatch::Begin(grpc_auth_context* connection) {
  if (!has_too_many()) {
    waiting_count_.fetch_add(1);
    return absl::OkStatus();
  }
  std::string name;
  {
    MutexLock lock(&mutex_);
    name = NameOf(connection);
  }
  if (Begin(name, SteadyNow())) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("calls that the connection has begun without sending their "
                   "messages: got ",
                   most_of_one() + 1, ", want at most ", most_of_one(),
                   ", twice --max-streams"));
}

bool ArrivalWatch::Begin(const std::string& connection, SteadyTime now) {
  if (has_too_many()) {
    MutexLock lock(&mutex_);
    if (now >= forgets_at_) {
      forgets_at_ = now + kMemory;
      waiting_counts_.clear();
      waiting_count_.store(0);
      is_counting_.store(false);
    } else {
      std::int64_t& count = waiting_counts_[connection];
      is_counting_.store(true);
      if (count >= most_of_one()) {
        refused_count_.fetch_add(1);
        return false;
      }
      ++count;
    }
  }
  waiting_count_.fetch_add(1);
  return true;
}

void ArrivalWatch::Arrive() {
  // Includes calls whose count was reset, so the count must not fall below 0.
  std::int64_t count = waiting_count_.load();
  while (count > 0 && !waiting_count_.compare_exchange_weak(count, count - 1)) {
  }
}

void ArrivalWatch::ArriveFrom(const grpc::AuthContext& connection) {
  std::string name;
  {
    MutexLock lock(&mutex_);
    name = NameOf(connection);
  }
  if (!name.empty()) ArriveFrom(name);
}

void ArrivalWatch::ArriveFrom(const std::string& connection) {
  MutexLock lock(&mutex_);
  const auto counted = waiting_counts_.find(connection);
  if (counted != waiting_counts_.end() && counted->second > 0) {
    --counted->second;
  }
}

}  // namespace attendant
