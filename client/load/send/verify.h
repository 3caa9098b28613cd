// How close answers come to the exact ones.
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
  // Checks that were made, and those that failed, which count for nothing else.
  std::int64_t query_count = 0;
  std::int64_t failed_count = 0;
  absl::Status first_failure = absl::OkStatus();
  // Those of query_count whose answer was given under load.
  std::int64_t under_load_count = 0;
  // Share of the exact answer's items that the answer holds.
  double mean_recall = 0;
  double min_recall = 0;
  // Over items in both answers. Logits are exact, so that theirs is 0 unless
  // items are written meanwhile; weights differ where the shortlist does.
  double max_logit_difference = 0;
  double max_weight_difference = 0;

  // Adds one answer.
  void Add(const v1::AttendResponse& answer, const v1::AttendResponse& exact);
  void AddFailure(const absl::Status& failure);
};

// The share of the items of `exact` that are in `answer`; 1 if it has none.
double Recall(const v1::AttendResponse& answer,
              const v1::AttendResponse& exact);

// The largest difference of an item's logits, or weights; 0 if no item is in
// both.
double MaxLogitDifference(const v1::AttendResponse& answer,
                          const v1::AttendResponse& exact);
double MaxWeightDifference(const v1::AttendResponse& answer,
                           const v1::AttendResponse& exact);

// Checks answers of a load while it runs: takes some of them, evenly over time,
// and asks each again with scan_mode EXACT at once, on a thread of its own and
// one after the other, so that the load is hardly more than without.
class AnswerChecker {
 public:
  // Checks `count` >= 1 answers, one in each `period`. The client must outlive
  // the object.
  AnswerChecker(Client* client, std::int64_t count, absl::Duration period);
  ~AnswerChecker();

  // An AttendRequest and what came of it, as bytes. Returns at once, and in
  // next to no time where no answer is wanted. Thread-safe.
  void Offer(const grpc::ByteBuffer& request, const grpc::ByteBuffer& reply);

  // Ends the checks, and makes up for those that are missing by asking what
  // `next` gives, until that is nothing or a check fails. At most once.
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

  // The thread's, until it is joined.
  VerifyResult result_;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_VERIFY_H_
