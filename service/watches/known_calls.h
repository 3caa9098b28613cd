// The calls that the server was told of, by whose they are.
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

// A call costs a link in a list, twice under a lock; whose they are is asked
// when somebody wants to know. Thread-safe.
class KnownCalls {
 public:
  class Call : public LinkedList<Call>::Links {
   private:
    friend class KnownCalls;
    // Null: it is not in the list.
    const grpc::ServerContextBase* context_ = nullptr;
  };

  // Once gRPC has told `context` of its call.
  void Add(Call& call, const grpc::ServerContextBase& context) {
    MutexLock lock(&mutex_);
    call.context_ = &context;
    calls_.AddFirst(call);
  }
  // While gRPC has the call yet. Does nothing if it was not added.
  void Remove(Call& call) {
    MutexLock lock(&mutex_);
    if (call.context_ != nullptr) calls_.Remove(call);
    call.context_ = nullptr;
  }

  // By peers, as gRPC names them.
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
