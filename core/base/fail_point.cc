#include "core/base/fail_point.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/mutex.h"

namespace attendant {
namespace {

enum class Action { kKill, kError, kWait, kBug };

struct Armed {
  Action action = Action::kKill;
  std::string name;
  int count = 1;  // acts at this visit only, from 1
  int hit_count = 0;
};

absl::StatusOr<Armed> Parse(absl::string_view spec) {
  Armed armed;
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
  } else if (what == "kill" || what == "error" || what == "wait") {
    armed.action = what == "kill"    ? Action::kKill
                   : what == "error" ? Action::kError
                                     : Action::kWait;
    known = IsFailPoint(armed.name);
  }
  if (known && counted) return armed;
  return InvalidField("fail point", absl::StrCat("'", spec, "'"),
                      "NAME[:COUNT]=kill, error or wait, or NAME=bug with a "
                      "name of fail_point.h");
}

absl::StatusOr<std::vector<Armed>> ParseAll(absl::string_view specs) {
  std::vector<Armed> all;
  if (specs.empty()) return all;
  for (const absl::string_view spec : absl::StrSplit(specs, ',')) {
    ATTENDANT_ASSIGN_OR_RETURN(Armed armed, Parse(spec));
    for (const Armed& other : all) {
      if (other.name != armed.name) continue;
      return InvalidField("fail point", absl::StrCat("'", specs, "'"),
                          "each name of fail_point.h once");
    }
    all.push_back(std::move(armed));
  }
  return all;
}

class Registry {
 public:
  static Registry& Get() {
    static auto* const registry = new Registry;
    return *registry;
  }

  absl::Status Arm(absl::string_view specs) {
    absl::StatusOr<std::vector<Armed>> armed = ParseAll(specs);
    MutexLock lock(&mutex_);
    armed_ = armed.ok() ? *std::move(armed) : std::vector<Armed>();
    any_.store(!armed_.empty());
    changed_.NotifyAll();
    return armed.status();
  }

  absl::Status ComeBy(absl::string_view name) {
    if (!any_.load(std::memory_order_relaxed)) return absl::OkStatus();
    MutexLock lock(&mutex_);
    Armed* armed = Find(name);
    if (armed == nullptr || armed->action == Action::kBug ||
        ++armed->hit_count != armed->count) {
      return absl::OkStatus();
    }
    if (armed->action == Action::kKill) kill(getpid(), SIGKILL);
    if (armed->action == Action::kError) {
      return absl::InternalError(absl::StrCat("fail point ", name));
    }
    ++waiting_count_;
    while (armed != nullptr && armed->action == Action::kWait) {
      changed_.Wait(&mutex_);
      armed = Find(name);
    }
    --waiting_count_;
    return absl::OkStatus();
  }

  int waiting_count() {
    MutexLock lock(&mutex_);
    return waiting_count_;
  }

  bool HasBug(absl::string_view name) {
    if (!any_.load(std::memory_order_relaxed)) return false;
    MutexLock lock(&mutex_);
    const Armed* armed = Find(name);
    return armed != nullptr && armed->action == Action::kBug;
  }

 private:
  Registry() {
    const char* const spec = getenv("ATTENDANT_FAIL_POINT");
    if (spec != nullptr && !Arm(spec).ok()) std::abort();
  }

  // Returns null if `name` is not armed.
  Armed* Find(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = std::ranges::find_if(
        armed_, [&](const Armed& armed) { return armed.name == name; });
    return found == armed_.end() ? nullptr : &*found;
  }

  std::atomic<bool> any_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Armed> armed_ ABSL_GUARDED_BY(mutex_);
  int waiting_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::Status ArmFailPoint(absl::string_view specs) {
  return Registry::Get().Arm(specs);
}

int WaitingAtFailPoints() { return Registry::Get().waiting_count(); }

absl::Status ComeByFailPoint(absl::string_view name) {
  return Registry::Get().ComeBy(name);
}

bool HasPlantedBug(absl::string_view name) {
  return Registry::Get().HasBug(name);
}

}  // namespace attendant
