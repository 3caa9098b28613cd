// A server's certificate, kept up to date with its files.
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

// Examines the files before each handshake and reads them if they have changed.
// Files that do not hold a certificate and its key change nothing, are logged
// once, and are read again kRetryInterval later: clients may start thousands of
// handshakes a second. Thread-safe.
class TlsReloader {
 public:
  static constexpr std::chrono::milliseconds kRetryInterval{500};

  // Errors are those of ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<TlsReloader>> Open(
      const TlsPaths& paths);

  bool wants_client_certificates() const { return !paths_.client_ca.empty(); }

  // Returns the certificate for a handshake at `now`, which must not decrease;
  // the same object as long as it has not changed.
  std::shared_ptr<const TlsMaterial> Current(SteadyTime now);

  // OK if the contents of the files are now in use; otherwise the reason. After
  // a failure, reads them at once.
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
