#include "core/catalog/live/merged_away.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace attendant {

void MergedAway::Reserve(std::size_t count) {
  MutexLock lock(&mutex_);
  segments_.reserve(segments_.size() + count);
}

void MergedAway::Add(std::span<const std::shared_ptr<const Segment>> segments) {
  MutexLock lock(&mutex_);
  segments_.insert(segments_.end(), segments.begin(), segments.end());
}

void MergedAway::Free(int look_count) {
  for (int i = 0; i < look_count; ++i) {
    if (i > 0) absl::SleepFor(absl::Milliseconds(1));
    std::vector<std::shared_ptr<const Segment>> unread;  // freed unlocked
    MutexLock lock(&mutex_);
    std::erase_if(segments_, [&](std::shared_ptr<const Segment>& segment) {
      if (segment.use_count() > 1) return false;
      unread.push_back(std::move(segment));
      return true;
    });
    if (segments_.empty()) return;
  }
  const auto look = [this] {
    {
      MutexLock lock(&mutex_);
      look_scheduled_ = false;
    }
    Free(1);
  };
  MutexLock lock(&mutex_);
  if (look_scheduled_ || closed_) return;
  background_->Add(this, absl::Milliseconds(100), look, Lane::kShort);
  look_scheduled_ = true;
}

void MergedAway::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  background_->Remove(this);
  MutexLock lock(&mutex_);
  segments_.clear();
}

}  // namespace attendant
