#include "core/base/fail_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

enum class Action { kNone, kKill, kError, kBug };

struct Armed {
  Action action = Action::kNone;
  std::string name;
  int count = 1;  // of the time that counts
};

absl::StatusOr<Armed> Parse(absl::string_view spec) {
  Armed armed;
  if (spec.empty()) return armed;
  const std::size_t equals = spec.find('=');
  const absl::string_view what =
      equals == spec.npos ? "" : spec.substr(equals + 1);
  absl::string_view name = spec.substr(0, equals);
  const std::size_t colon = name.find(':');
  const bool counted =
      colon == name.npos ||
      (absl::SimpleAtoi(name.substr(colon + 1), &armed.count) &&
       armed.count >= 1 && what != "bug");
  name = name.substr(0, colon);
  armed.name = std::string(name);
  bool known = false;
  if (what == "bug") {
    armed.action = Action::kBug;
    known = IsPlantedBug(armed.name);
  } else if (what == "kill" || what == "error") {
    armed.action = what == "kill" ? Action::kKill : Action::kError;
    known = IsFailPoint(armed.name);
  }
  if (known && counted) return armed;
  return InvalidField("fail point", absl::StrCat("'", spec, "'"),
                      "NAME[:COUNT]=kill, NAME[:COUNT]=error or NAME=bug with "
                      "a name of fail_point.h");
}

class Registry {
 public:
  static Registry& Get() {
    static auto* const registry = new Registry;
    return *registry;
  }

  absl::Status Arm(absl::string_view spec) {
    absl::StatusOr<Armed> armed = Parse(spec);
    MutexLock lock(&mutex_);
    armed_ = armed.ok() ? *std::move(armed) : Armed();
    hit_count_ = 0;
    any_.store(armed_.action != Action::kNone);
    return armed.status();
  }

  absl::Status ComeBy(absl::string_view name) {
    if (!any_.load(std::memory_order_relaxed)) return absl::OkStatus();
    MutexLock lock(&mutex_);
    if (armed_.action == Action::kBug || armed_.name != name ||
        ++hit_count_ != armed_.count) {
      return absl::OkStatus();
    }
    if (armed_.action == Action::kKill) kill(getpid(), SIGKILL);
    return absl::InternalError(absl::StrCat("fail point ", name));
  }

  bool HasBug(absl::string_view name) {
    if (!any_.load(std::memory_order_relaxed)) return false;
    MutexLock lock(&mutex_);
    return armed_.action == Action::kBug && armed_.name == name;
  }

 private:
  Registry() {
    const char* const spec = getenv("ATTENDANT_FAIL_POINT");
    if (spec != nullptr && !Arm(spec).ok()) std::abort();
  }

  std::atomic<bool> any_ = false;
  Mutex mutex_;
  Armed armed_ ABSL_GUARDED_BY(mutex_);
  int hit_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status ArmFailPoint(absl::string_view spec) {
  return Registry::Get().Arm(spec);
}

absl::Status ComeByFailPoint(absl::string_view name) {
  return Registry::Get().ComeBy(name);
}

bool HasPlantedBug(absl::string_view name) {
  return Registry::Get().HasBug(name);
}

}  // namespace attendant
