// The certificate of a server, as new as its files.
#ifndef ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_
#define ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_

#include <chrono>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "service/security/tls_files.h"
#include "service/security/watched_files.h"

namespace attendant {

// Asked before each handshake, it looks at the files and reads those that have
// changed. What does not hold a certificate with its key changes nothing, the
// log says so once, and it is read again kRetryInterval later: clients may
// shake hands thousands of times a second. Thread-safe.
class TlsReloader {
 public:
  static constexpr std::chrono::milliseconds kRetryInterval{500};

  // Errors are those of ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<TlsReloader>> Open(
      const TlsPaths& paths);

  bool wants_client_certificates() const { return !paths_.client_ca.empty(); }

  // What to shake hands with at `now`, which does not go back; the same object
  // as long as it is the same.
  std::shared_ptr<const TlsMaterial> Current(SteadyTime now);

  // OK if the files are what is in use from now on; else why they are not.
  // Reads them at once where that failed before.
  absl::Status Reload();

 private:
  TlsReloader(const TlsPaths& paths, WatchedFiles files, TlsMaterial material);

  absl::Status ReadIfChanged(SteadyTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsPaths paths_;
  Mutex mutex_;
  WatchedFiles files_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);  // of reading; or OK
  SteadyTime next_look_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_
