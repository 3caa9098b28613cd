// Compares answers with exact ones.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_VERIFY_H_
#define ATTENDANT_CLIENT_LOAD_SEND_VERIFY_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/api/client.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace attendant {

struct VerifyResult {
  // Checks made, and checks that failed, which count in nothing else here.
  std::int64_t query_count = 0;
  std::int64_t failed_count = 0;
  absl::Status first_failure = absl::OkStatus();
  // Checks in query_count whose answer was given under load.
  std::int64_t under_load_count = 0;
  // The share of the exact answer's items that the answer has.
  double mean_recall = 0;
  double min_recall = 0;
  // Over items in both answers. Logits are exact, so their difference is 0
  // unless items are written meanwhile. Weights differ if the shortlists do.
  double max_logit_difference = 0;
  double max_weight_difference = 0;

  // Adds one answer.
  void Add(const v1::AttendResponse& answer, const v1::AttendResponse& exact);
  void AddFailure(const absl::Status& failure);
};

// Returns the share of the items of `exact` that are in `answer`; 1 if `exact`
// has none.
double Recall(const v1::AttendResponse& answer,
              const v1::AttendResponse& exact);

// Return the largest difference of an item's logits or weights; 0 if no item is
// in both.
double MaxLogitDifference(const v1::AttendResponse& answer,
                          const v1::AttendResponse& exact);
double MaxWeightDifference(const v1::AttendResponse& answer,
                           const v1::AttendResponse& exact);

// Checks answers of a load while it runs. Picks some evenly over time and at
// once asks each query again with scan_mode EXACT, one after the other on a
// thread of its own, so that it adds little load.
class AnswerChecker {
 public:
  // Checks `count` >= 1 answers, one in each `period`. The client must outlive
  // the object.
  AnswerChecker(Client* client, std::int64_t count, absl::Duration period);
  ~AnswerChecker();

  // Offers a serialized AttendRequest and its reply. Does not block, and costs
  // almost nothing while no answer is wanted. Thread-safe.
  void Offer(const grpc::ByteBuffer& request, const grpc::ByteBuffer& reply);

  // Ends the checks, then makes the missing ones with the queries that `next`
  // returns, until it returns nothing or a check fails. Call it at most once.
  VerifyResult Finish(
      absl::FunctionRef<std::optional<v1::AttendRequest>()> next);

 private:
  struct Answer {
    grpc::ByteBuffer request;
    grpc::ByteBuffer reply;
  };

  void Run();
  void Stop();
  std::int64_t checked_count() const {
    return result_.query_count + result_.failed_count;
  }
  absl::Status Check(const v1::AttendRequest& request,
                     const v1::AttendResponse& answer);
  absl::Status CheckUnderLoad(const Answer& answer);
  absl::Status AskAndCheck(const v1::AttendRequest& request);

  Client* const client_;
  const std::int64_t count_;
  const absl::Duration period_;
  std::atomic<SteadyTime> next_;  // when an answer is wanted

  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Answer> offered_ ABSL_GUARDED_BY(mutex_);

  // Used by the thread until it is joined.
  VerifyResult result_;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_VERIFY_H_
