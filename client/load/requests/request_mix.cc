#include "client/load/requests/request_mix.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/random.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns a pseudorandom number in [0, 1) for a request.
double Uniform(std::uint64_t seed, std::int64_t index) {
  return UniformFrom(SplitMixBits(seed, static_cast<std::uint64_t>(index)));
}

}  // namespace

absl::StatusOr<std::vector<MixShare>> ParseMix(absl::string_view text) {
  std::vector<MixShare> mix;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> named =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    MixShare share{.kind = std::string(named.first)};
    const bool is_kind = share.kind == kAttendKind ||
                         share.kind == kExamplesKind ||
                         share.kind == kFilterKind || share.kind == kWriteKind;
    const bool is_new = std::ranges::none_of(
        mix, [&](const MixShare& other) { return other.kind == share.kind; });
    const bool has_share = absl::StrContains(part, '=');
    if (!is_kind || !is_new ||
        (has_share && (!absl::SimpleAtod(named.second, &share.share) ||
                       !std::isfinite(share.share) || share.share <= 0))) {
      return InvalidField("mix", absl::StrCat("\"", part, "\""),
                          "attend, examples, filter or write, each once, as "
                          "KIND or KIND=SHARE with a share > 0");
    }
    mix.push_back(std::move(share));
  }
  return mix;
}

void RequestMix::Add(const std::string& kind, double share, std::string method,
                     Make make) {
  const double begin = parts_.empty() ? 0 : parts_.back().end;
  parts_.push_back({kind, begin + share, std::move(method), std::move(make)});
}

std::vector<std::string> RequestMix::kinds() const {
  std::vector<std::string> kinds;
  for (const Part& part : parts_) kinds.push_back(part.kind);
  return kinds;
}

int RequestMix::KindOf(std::int64_t index) const {
  const double drawn = Uniform(seed_, index) * parts_.back().end;
  std::size_t part = 0;
  while (part + 1 < parts_.size() && drawn >= parts_[part].end) ++part;
  return static_cast<int>(part);
}

const std::string& RequestMix::MethodOf(int kind) const {
  return parts_[kind].method;
}

grpc::ByteBuffer RequestMix::Bytes(int kind, std::int64_t index) const {
  return parts_[kind].make(index);
}

}  // namespace attendant
