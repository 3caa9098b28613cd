#include "client/api/importer.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/grpc_status.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Every server accepts messages of this size.
constexpr std::int64_t kMinMessageBytes = 64 << 10;

}  // namespace

// The gRPC side. One read is always under way, and at most one write. A hold
// keeps the stream open between writes; it is removed once the server has ended
// its side and no write is under way. OnDone follows, and the destructor waits
// for it. gRPC is never called with the mutex held.
//
// The context holds the channel, whose destructor must not run on one of gRPC's
// threads: it would shut down the completion queue that the thread is reading.
// Hence the destructor, on the caller's thread, destroys all members.
class Importer::Stream
    : public grpc::ClientBidiReactor<v1::ImportItemsRequest,
                                     v1::ImportItemsResponse> {
 public:
  Stream(v1::ItemService::Stub* stub, const ImportOptions& options)
      : options_(options) {
    stub->async()->ImportItems(&context_, this);
    AddHold();
    StartRead(&response_);
    StartCall();
  }

  // Cancels the stream unless it is done.
  ~Stream() override {
    context_.TryCancel();
    MutexLock lock(&mutex_);
    while (!done_) changed_.Wait(&mutex_);
  }

  // Waits until there is room for the message, then sends it.
  absl::Status Send(v1::ImportItemsRequest message) {
    {
      MutexLock lock(&mutex_);
      while (!read_ended_ && (writing_ || !HasRoom())) {
        ATTENDANT_RETURN_IF_ERROR(WaitForChange());
      }
      if (read_ended_) return EndStatus();
      writing_ = true;
      sent_count_ += message.items_size();
      in_flight_.push_back(sent_count_);
    }
    request_ = std::move(message);
    StartWrite(&request_);
    return absl::OkStatus();
  }

  // Waits until all messages sent are acknowledged.
  absl::Status AwaitAcknowledgement() {
    MutexLock lock(&mutex_);
    while (!read_ended_ && !in_flight_.empty()) {
      ATTENDANT_RETURN_IF_ERROR(WaitForChange());
    }
    return read_ended_ ? EndStatus() : absl::OkStatus();
  }

  // Closes the sending side and waits for the end of the stream.
  absl::Status Finish() {
    {
      MutexLock lock(&mutex_);
      while (!read_ended_ && writing_) {
        ATTENDANT_RETURN_IF_ERROR(WaitForChange());
      }
      if (read_ended_) return EndStatus();
      all_sent_ = true;
      writing_ = true;
    }
    StartWritesDone();
    MutexLock lock(&mutex_);
    return EndStatus();
  }

  ImportProgress progress() {
    MutexLock lock(&mutex_);
    return progress_;
  }

  std::vector<v1::ImportFailure> TakeFailures() {
    MutexLock lock(&mutex_);
    return std::exchange(failures_, {});
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      bool release = false;
      {
        MutexLock lock(&mutex_);
        read_ended_ = true;
        release = !writing_;
        Changed();
      }
      if (release) RemoveHold();
      return;
    }
    {
      MutexLock lock(&mutex_);
      progress_.acknowledged_count = response_.acknowledged_count();
      progress_.stored_count = response_.stored_count();
      progress_.refused_count += response_.failures_size();
      progress_.state_token = response_.state_token();
      for (v1::ImportFailure& failure : *response_.mutable_failures()) {
        failures_.push_back(std::move(failure));
      }
      while (!in_flight_.empty() &&
             in_flight_.front() <= progress_.acknowledged_count) {
        in_flight_.pop_front();
      }
      Changed();
    }
    StartRead(&response_);
  }

  void OnWriteDone(bool /*ok*/) override { OnAnyWriteDone(); }
  void OnWritesDoneDone(bool /*ok*/) override { OnAnyWriteDone(); }

  void OnDone(const grpc::Status& status) override {
    MutexLock lock(&mutex_);
    done_ = true;
    status_ = FromGrpcStatus(status);
    Changed();
  }

 private:
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(in_flight_.size()) <
           options_.max_messages_in_flight;
  }

  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++change_count_;
    changed_.NotifyAll();
  }

  // Waits for a change; cancels the import if none comes in stall_timeout.
  absl::Status WaitForChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::int64_t change_count = change_count_;
    const SteadyTime deadline = SteadyAfter(options_.stall_timeout);
    while (change_count_ == change_count) {
      const absl::Duration left = TimeUntil(deadline);
      if (left <= absl::ZeroDuration()) {
        context_.TryCancel();
        return absl::DeadlineExceededError(
            absl::StrCat("the server has not acknowledged items for ",
                         absl::FormatDuration(options_.stall_timeout)));
      }
      changed_.WaitWithTimeout(&mutex_, left);
    }
    return absl::OkStatus();
  }

  // Waits for the end of the stream and returns its outcome.
  absl::Status EndStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!done_) ATTENDANT_RETURN_IF_ERROR(WaitForChange());
    if (!status_.ok()) return status_;
    if (!all_sent_ || progress_.acknowledged_count != sent_count_) {
      return absl::InternalError(absl::StrCat(
          "the server ended the import after ", progress_.acknowledged_count,
          " of ", sent_count_, " items sent"));
    }
    return absl::OkStatus();
  }

  void OnAnyWriteDone() {
    bool release = false;
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      release = read_ended_;
      Changed();
    }
    if (release) RemoveHold();
  }

  const ImportOptions options_;
  grpc::ClientContext context_;
  v1::ImportItemsRequest request_;    // used by the write while writing_
  v1::ImportItemsResponse response_;  // used by the read

  Mutex mutex_;
  CondVar changed_;
  std::int64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool all_sent_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::int64_t sent_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // For each message not yet acknowledged, the count of items sent up to its
  // end.
  std::deque<std::int64_t> in_flight_ ABSL_GUARDED_BY(mutex_);
  ImportProgress progress_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ImportFailure> failures_ ABSL_GUARDED_BY(mutex_);
};

Importer::Importer(v1::ItemService::Stub* stub, const std::string& catalog,
                   const ImportOptions& options)
    : stub_(stub),
      catalog_(catalog),
      options_(options),
      stream_(std::make_unique<Stream>(stub, options)),
      taken_bytes_(kMinMessageBytes) {
  batch_.set_catalog(catalog);
}

Importer::~Importer() = default;

absl::Status Importer::Send() {
  batch_bytes_ = 0;
  v1::ImportItemsRequest message = std::exchange(batch_, {});
  const auto bytes = static_cast<std::int64_t>(message.ByteSizeLong());
  if (bytes <= taken_bytes_) return stream_->Send(std::move(message));
  // A message that may be too large is sent alone: if it is refused, the fate
  // of all others is known.
  ATTENDANT_RETURN_IF_ERROR(stream_->AwaitAcknowledgement());
  ATTENDANT_RETURN_IF_ERROR(stream_->Send(message));
  const absl::Status status = stream_->AwaitAcknowledgement();
  if (ReasonOf(status) == kMessageTooLarge) {
    if (message.items_size() > 1) {
      options_.batch_bytes = bytes / 2;
      return SendAgain(std::move(message));
    }
    return PrefixField(
        status, absl::StrCat("item '", message.items(0).id(), "' takes "));
  }
  if (status.ok()) taken_bytes_ = bytes;
  return status;
}

absl::Status Importer::SendAgain(v1::ImportItemsRequest refused) {
  failures_before_ = TakeFailures();
  progress_before_ = progress();
  stream_ = std::make_unique<Stream>(stub_, options_);
  batch_.set_catalog(catalog_);
  for (v1::Item& item : *refused.mutable_items()) {
    ATTENDANT_RETURN_IF_ERROR(Append(std::move(item)));
  }
  return absl::OkStatus();
}

absl::Status Importer::Append(v1::Item item) {
  const auto bytes = static_cast<std::int64_t>(item.ByteSizeLong());
  // A loop: sending a message that is refused puts some of its items back.
  while (batch_.items_size() > 0 &&
         (batch_.items_size() >= options_.batch_item_count ||
          batch_bytes_ + bytes > options_.batch_bytes)) {
    ATTENDANT_RETURN_IF_ERROR(Send());
  }
  batch_.set_if_absent(options_.if_absent);
  *batch_.add_items() = std::move(item);
  batch_bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status Importer::Add(v1::Item item) {
  ATTENDANT_RETURN_IF_ERROR(Append(std::move(item)));
  ++added_count_;
  return absl::OkStatus();
}

absl::Status Importer::Finish() {
  // The first message names the catalog, and is sent even without items.
  while (batch_.items_size() > 0 || !batch_.catalog().empty()) {
    ATTENDANT_RETURN_IF_ERROR(Send());
  }
  return stream_->Finish();
}

ImportProgress Importer::progress() const {
  ImportProgress progress = stream_->progress();
  progress.added_count = added_count_;
  progress.acknowledged_count += progress_before_.acknowledged_count;
  progress.stored_count += progress_before_.stored_count;
  progress.refused_count += progress_before_.refused_count;
  if (progress.state_token.empty()) {
    progress.state_token = progress_before_.state_token;
  }
  return progress;
}

std::vector<v1::ImportFailure> Importer::TakeFailures() {
  std::vector<v1::ImportFailure> failures = std::exchange(failures_before_, {});
  for (v1::ImportFailure& failure : stream_->TakeFailures()) {
    failure.set_item_index(failure.item_index() +
                           progress_before_.acknowledged_count);
    failures.push_back(std::move(failure));
  }
  return failures;
}

}  // namespace attendant
