// The certificate of a server, as new as its files.
#ifndef ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_
#define ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "service/security/tls_files.h"
#include "service/security/watched_files.h"

namespace attendant {

// Asked before each handshake, it looks at the files and reads those that have
// changed. What does not hold a certificate with its key changes nothing, and
// the log says so once. Thread-safe.
class TlsReloader {
 public:
  // Errors are those of ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<TlsReloader>> Open(
      const TlsPaths& paths);

  bool wants_client_certificates() const { return !paths_.client_ca.empty(); }

  // What to shake hands with now; the same object as long as it is the same.
  std::shared_ptr<const TlsMaterial> Current();

  // OK if the files are what is in use from now on; else why they are not.
  absl::Status Reload();

 private:
  TlsReloader(const TlsPaths& paths, WatchedFiles files, TlsMaterial material);

  absl::Status ReadIfChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsPaths paths_;
  Mutex mutex_;
  WatchedFiles files_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_failure_ ABSL_GUARDED_BY(mutex_);  // of reading; or OK
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TLS_RELOADER_H_
