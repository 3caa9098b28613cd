#include "core/shortlist/mass/learned_mass.h"

#include <algorithm>
#include <utility>

#include "core/base/random.h"

namespace attendant {

void KnownMasses::Add(const LearnedMass& mass) {
  const auto [place, is_new] = masses_.try_emplace(&mass);
  if (is_new) place->second = mass.Load();
}

std::shared_ptr<const UnscoredMass> KnownMasses::Find(
    const LearnedMass& mass) const {
  const auto found = masses_.find(&mass);
  return found == masses_.end() ? nullptr : found->second;
}

LearnedMass::LearnedMass(UnscoredMass mass, std::int64_t dim)
    : dim_(static_cast<std::size_t>(dim)),
      mass_(std::make_shared<const UnscoredMass>(std::move(mass))),
      kept_(kKeptQueries * dim_) {}

std::shared_ptr<const UnscoredMass> LearnedMass::Load(
    const KnownMasses* known) const {
  auto mass = known == nullptr ? nullptr : known->Find(*this);
  return mass == nullptr ? Load() : mass;
}

bool LearnedMass::Guess(const KnownMasses* known,
                        std::span<const ListPart> parts,
                        const VisitedMass& visited, UnscoredGuess& guess) {
  const std::shared_ptr<const UnscoredMass> mass = Load(known);
  if (!mass->usable()) return false;
  Asked(visited.query);
  return mass->Guess(parts, visited, guess);
}

void LearnedMass::Asked(std::span<const float> query) {
  const auto before = static_cast<std::uint64_t>(
      asked_count_.fetch_add(1, std::memory_order_relaxed));
  const std::uint64_t place =
      before < kKeptQueries ? before : RandomBits(0, before) % (before + 1);
  if (place >= kKeptQueries) return;
  // The holder of the lock may be a background thread. No query waits for it;
  // the query is dropped instead, which the sample does not miss.
  if (!mutex_.TryLock()) return;
  std::ranges::copy(query,
                    kept_.begin() + static_cast<std::ptrdiff_t>(place * dim_));
  mutex_.Unlock();
}

std::vector<float> LearnedMass::KeptQueries() const {
  std::vector<float> kept;
  {
    MutexLock lock(&mutex_);
    kept = kept_;
  }
  std::vector<std::span<const float>> queries;
  for (std::size_t at = 0; at < kept.size(); at += dim_) {
    const auto query = std::span<const float>(kept).subspan(at, dim_);
    const bool is_missing = std::ranges::all_of(
        query, [](float component) { return component == 0; });
    if (!is_missing) queries.push_back(query);
  }
  std::ranges::sort(queries, [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b);
  });
  queries.erase(std::unique(queries.begin(), queries.end(),
                            [](const auto& a, const auto& b) {
                              return std::ranges::equal(a, b);
                            }),
                queries.end());
  std::vector<float> different;
  if (queries.size() < kMinQueries) return different;
  for (const std::span<const float> query : queries) {
    different.insert(different.end(), query.begin(), query.end());
  }
  return different;
}

void LearnedMass::Store(UnscoredMass mass) {
  if (mass.usable()) {
    mass_.Store(std::make_shared<const UnscoredMass>(std::move(mass)));
    ++learned_count_;
  }
  // No index is asked this often.
  constexpr std::int64_t kMost = std::int64_t{1} << 56;
  due_count_ = std::min(kMost, due_count_.load()) * kDueFactor;
}

void LearnedMass::KeepOthers() {
  MutexLock lock(&mutex_);
  std::ranges::fill(kept_, 0.0f);
  asked_count_ = 0;
}

std::int64_t LearnedMass::memory_bytes() const {
  return Load()->memory_bytes() +
         static_cast<std::int64_t>(kKeptQueries * dim_ * sizeof(float));
}

}  // namespace attendant
