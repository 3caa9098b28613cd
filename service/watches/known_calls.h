// The calls that the server was told of, by peer.
#ifndef ATTENDANT_SERVICE_WATCHES_KNOWN_CALLS_H_
#define ATTENDANT_SERVICE_WATCHES_KNOWN_CALLS_H_

#include <grpcpp/server_context.h>

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "service/watches/linked_list.h"

namespace attendant {

// Tracks calls at the cost of a list link, taken twice under a lock; peers are
// determined only on request. Thread-safe.
class KnownCalls {
 public:
  class Call : public LinkedList<Call>::Links {
   private:
    friend class KnownCalls;
    // Null: not in the list.
    const grpc::ServerContextBase* context_ = nullptr;
  };

  // Call once gRPC has initialised `context` with its call.
  void Add(Call& call, const grpc::ServerContextBase& context) {
    MutexLock lock(&mutex_);
    call.context_ = &context;
    calls_.AddFirst(call);
  }
  // Call while gRPC still has the call. Does nothing if it was not added.
  void Remove(Call& call) {
    MutexLock lock(&mutex_);
    if (call.context_ != nullptr) calls_.Remove(call);
    call.context_ = nullptr;
  }

  // Returns the number of calls by peer, as gRPC names it.
  absl::flat_hash_map<std::string, std::int64_t> Counts() const {
    absl::flat_hash_map<std::string, std::int64_t> counts;
    MutexLock lock(&mutex_);
    for (const Call* call = calls_.first(); call != nullptr;
         call = calls_.After(*call)) {
      ++counts[call->context_->peer()];
    }
    return counts;
  }

 private:
  mutable Mutex mutex_;
  LinkedList<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_WATCHES_KNOWN_CALLS_H_
