#include "service/security/tls_reloader.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "service/log/log.h"

namespace attendant {

absl::StatusOr<std::unique_ptr<TlsReloader>> TlsReloader::Open(
    const TlsPaths& paths) {
  // Watched before they are read, so that no change is missed.
  WatchedFiles files({paths.certificate, paths.key, paths.client_ca});
  ATTENDANT_ASSIGN_OR_RETURN(TlsMaterial material, ReadTlsFiles(paths));
  return std::unique_ptr<TlsReloader>(
      new TlsReloader(paths, std::move(files), std::move(material)));
}

TlsReloader::TlsReloader(const TlsPaths& paths, WatchedFiles files,
                         TlsMaterial material)
    : paths_(paths),
      files_(std::move(files)),
      material_(std::make_shared<TlsMaterial>(std::move(material))) {}

std::shared_ptr<const TlsMaterial> TlsReloader::Current(SteadyTime now) {
  MutexLock lock(&mutex_);
  // ReadIfChanged logs failures.
  if (now >= next_look_) ReadIfChanged(now).IgnoreError();
  return material_;
}

absl::Status TlsReloader::Reload() {
  MutexLock lock(&mutex_);
  return ReadIfChanged(SteadyNow());
}

absl::Status TlsReloader::ReadIfChanged(SteadyTime now) {
  if (!files_.HaveChanged()) return absl::OkStatus();
  absl::StatusOr<TlsMaterial> material = ReadTlsFiles(paths_);
  if (!material.ok()) {
    files_.ReadAgain();
    next_look_ = now + kRetryInterval;
    const bool is_known = material.status() == last_failure_;
    last_failure_ = material.status();
    if (is_known) return last_failure_;
    LogEvent(LogLevel::kError, "tls_not_reloaded",
             {{"error", std::string(material.status().message())},
              {"what_now", "the certificate read before remains in use"}});
    return last_failure_;
  }
  last_failure_ = absl::OkStatus();
  next_look_ = SteadyTime::min();
  material_ = std::make_shared<TlsMaterial>(*std::move(material));
  LogEvent(
      LogLevel::kInfo, "tls_reloaded",
      {{"certificate", paths_.certificate},
       {"expires", absl::FormatTime(material_->expiry, absl::UTCTimeZone())}});
  return absl::OkStatus();
}

}  // namespace attendant
