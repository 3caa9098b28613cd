#include "client/load/send/verify.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/status.h"

namespace attendant {
namespace {

using ItemsById = std::map<std::string, const v1::AttendedItem*>;

ItemsById ById(const v1::AttendResponse& answer) {
  ItemsById items;
  for (const v1::AttendedItem& item : answer.items()) items[item.id()] = &item;
  return items;
}

// Returns the largest difference of what `of` returns for an item in both.
template <typename Number>
double MaxDifference(const v1::AttendResponse& answer,
                     const v1::AttendResponse& exact,
                     Number (v1::AttendedItem::*of)() const) {
  const ItemsById found = ById(answer);
  double difference = 0;
  for (const v1::AttendedItem& item : exact.items()) {
    const auto it = found.find(item.id());
    if (it == found.end()) continue;
    difference = std::max<double>(
        difference, std::fabs((it->second->*of)() - (item.*of)()));
  }
  return difference;
}

template <typename Message>
absl::StatusOr<Message> Parse(grpc::ByteBuffer bytes) {
  Message message;
  const grpc::Status status =
      grpc::GenericDeserialize<grpc::ProtoBufferReader, Message>(&bytes,
                                                                 &message);
  if (status.ok()) return message;
  return absl::InternalError("an answer's bytes are no message");
}

}  // namespace

void VerifyResult::Add(const v1::AttendResponse& answer,
                       const v1::AttendResponse& exact) {
  const double recall = Recall(answer, exact);
  min_recall = query_count == 0 ? recall : std::min(min_recall, recall);
  ++query_count;
  mean_recall += (recall - mean_recall) / static_cast<double>(query_count);
  max_logit_difference =
      std::max(max_logit_difference, MaxLogitDifference(answer, exact));
  max_weight_difference =
      std::max(max_weight_difference, MaxWeightDifference(answer, exact));
}

void VerifyResult::AddFailure(const absl::Status& failure) {
  if (failed_count++ == 0) first_failure = failure;
}

double Recall(const v1::AttendResponse& answer,
              const v1::AttendResponse& exact) {
  if (exact.items().empty()) return 1;
  const ItemsById found = ById(answer);
  std::int64_t hit_count = 0;
  for (const v1::AttendedItem& item : exact.items()) {
    if (found.contains(item.id())) ++hit_count;
  }
  return static_cast<double>(hit_count) / exact.items_size();
}

double MaxLogitDifference(const v1::AttendResponse& answer,
                          const v1::AttendResponse& exact) {
  return MaxDifference(answer, exact, &v1::AttendedItem::logit);
}

double MaxWeightDifference(const v1::AttendResponse& answer,
                           const v1::AttendResponse& exact) {
  return MaxDifference(answer, exact, &v1::AttendedItem::weight);
}

AnswerChecker::AnswerChecker(Client* client, std::int64_t count,
                             absl::Duration period)
    : client_(client),
      count_(count),
      period_(period),
      next_(SteadyNow()),
      thread_([this] { Run(); }) {}

AnswerChecker::~AnswerChecker() { Stop(); }

void AnswerChecker::Offer(const grpc::ByteBuffer& request,
                          const grpc::ByteBuffer& reply) {
  const SteadyTime now = SteadyNow();
  SteadyTime next = next_.load(std::memory_order_relaxed);
  if (now < next || !next_.compare_exchange_strong(
                        next, now + absl::ToChronoNanoseconds(period_))) {
    return;
  }
  MutexLock lock(&mutex_);
  if (offered_) return;
  offered_ = {request, reply};
  changed_.NotifyAll();
}

void AnswerChecker::Run() {
  while (checked_count() < count_) {
    std::optional<Answer> answer;
    {
      MutexLock lock(&mutex_);
      while (!offered_ && !stopped_) changed_.Wait(&mutex_);
      if (stopped_) return;
      answer = std::exchange(offered_, std::nullopt);
    }
    const absl::Status status = CheckUnderLoad(*answer);
    if (status.ok()) {
      ++result_.under_load_count;
    } else {
      result_.AddFailure(status);
    }
  }
}

absl::Status AnswerChecker::CheckUnderLoad(const Answer& answer) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto request,
                             Parse<v1::AttendRequest>(answer.request));
  ATTENDANT_ASSIGN_OR_RETURN(const auto reply,
                             Parse<v1::AttendResponse>(answer.reply));
  return Check(request, reply);
}

absl::Status AnswerChecker::AskAndCheck(const v1::AttendRequest& request) {
  ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse answer,
                             client_->Attend(request));
  return Check(request, answer);
}

absl::Status AnswerChecker::Check(const v1::AttendRequest& request,
                                  const v1::AttendResponse& answer) {
  v1::AttendRequest exact_request = request;
  exact_request.set_scan_mode(v1::SCAN_MODE_EXACT);
  ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse exact,
                             client_->Attend(exact_request));
  result_.Add(answer, exact);
  return absl::OkStatus();
}

void AnswerChecker::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

VerifyResult AnswerChecker::Finish(
    absl::FunctionRef<std::optional<v1::AttendRequest>()> next) {
  Stop();
  while (checked_count() < count_) {
    const std::optional<v1::AttendRequest> request = next();
    if (!request) break;
    const absl::Status status = AskAndCheck(*request);
    if (status.ok()) continue;
    // If the server is gone, each further check would wait for it.
    result_.AddFailure(status);
    break;
  }
  return result_;
}

}  // namespace attendant
