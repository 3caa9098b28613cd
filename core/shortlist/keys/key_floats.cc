#include "core/shortlist/keys/key_floats.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/shortlist/keys/huge_pages.h"

namespace attendant {
namespace {

// Bytes of a file that are written at a time.
constexpr std::int64_t kStepBytes = 1 << 20;
// Keys that are read before faults are counted for the first time.
constexpr std::size_t kFirstReads = 16;

std::int64_t PageFaultsFromDisk() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

absl::Status Write(
    std::int64_t count, std::int64_t dim, ScratchFile& file,
    absl::FunctionRef<std::span<const float>(std::int64_t)> key_at) {
  const std::int64_t key_bytes = dim * std::int64_t{sizeof(float)};
  const std::int64_t step = std::max<std::int64_t>(1, kStepBytes / key_bytes);
  AlignedBuffer<float> keys(static_cast<std::size_t>(step * dim));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    const std::int64_t end = std::min(count, begin + step);
    float* to = keys.data();
    for (std::int64_t p = begin; p < end; ++p) {
      MakeWayAt(p);
      const std::span<const float> key = key_at(p);
      to = std::copy(key.begin(), key.end(), to);
    }
    ATTENDANT_RETURN_IF_ERROR(
        file.Append(std::as_bytes(std::span<const float>(keys.data(), to))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KeyFloats> KeyFloats::Gather(
    std::int64_t count, std::int64_t dim, ScratchFiles* files,
    absl::FunctionRef<std::span<const float>(std::int64_t)> key_at) {
  KeyFloats floats;
  if (files != nullptr && count > 0) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::unique_ptr<ScratchFile> file,
        files->Create(count * dim * std::int64_t{sizeof(float)}));
    ATTENDANT_RETURN_IF_ERROR(Write(count, dim, *file, key_at));
    ATTENDANT_ASSIGN_OR_RETURN(floats.file_, file->Map());
    return floats;
  }
  floats.memory_ = AlignedBuffer<float>(static_cast<std::size_t>(count * dim));
  PreferHugePages(floats.memory_);
  float* to = floats.memory_.data();
  for (std::int64_t p = 0; p < count; ++p) {
    MakeWayAt(p);
    const std::span<const float> key = key_at(p);
    to = std::copy(key.begin(), key.end(), to);
  }
  return floats;
}

absl::StatusOr<KeyFloats> KeyFloats::Load(ByteSource& source,
                                          std::int64_t count, std::int64_t dim,
                                          ScratchFiles* files) {
  KeyFloats floats;
  const auto float_count = static_cast<std::uint64_t>(count * dim);
  if (float_count > source.left() / sizeof(float)) {
    source.Fail(absl::DataLossError("it holds fewer keys than it says"));
  }
  if (!source.status().ok()) return floats;
  if (files == nullptr || count == 0) {
    floats.memory_ = AlignedBuffer<float>(float_count);
    PreferHugePages(floats.memory_);
    source.GetBytes(std::as_writable_bytes(floats.memory_.span()));
    return floats;
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<ScratchFile> file,
      files->Create(count * dim * std::int64_t{sizeof(float)}));
  AlignedBuffer<std::byte> block(kStepBytes);
  for (std::uint64_t left = float_count * sizeof(float); left > 0;) {
    const std::span<std::byte> bytes =
        block.span().first(std::min<std::uint64_t>(left, block.size()));
    source.GetBytes(bytes);
    if (!source.status().ok()) return KeyFloats();
    ATTENDANT_RETURN_IF_ERROR(file->Append(bytes));
    left -= bytes.size();
  }
  ATTENDANT_ASSIGN_OR_RETURN(floats.file_, file->Map());
  return floats;
}

// Asking whether a page is in memory takes no less time than reading it. So
// keys are read in groups that double in size, and the thread's faults are
// counted after each: once a group had to wait for the disk, all remaining keys
// are requested at once.
void KeyFloats::AwaitPages(std::span<const std::int32_t> positions,
                           std::int64_t dim) const {
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t key_bytes = static_cast<std::size_t>(dim) * sizeof(float);
  const auto begin_of = [&](std::size_t i) {
    return static_cast<std::size_t>(positions[i]) * key_bytes;
  };
  const volatile std::byte* bytes = file_.random();
  const std::int64_t faults = PageFaultsFromDisk();
  std::size_t done = 0;
  for (std::size_t end = kFirstReads; done < positions.size(); end *= 2) {
    for (; done < std::min(end, positions.size()); ++done) {
      const std::size_t begin = begin_of(done);
      for (std::size_t at = begin; at < begin + key_bytes; at += page_bytes) {
        static_cast<void>(bytes[at]);
      }
      static_cast<void>(bytes[begin + key_bytes - 1]);
    }
    if (done < positions.size() && PageFaultsFromDisk() > faults) break;
  }
  for (; done < positions.size(); ++done) {
    const std::size_t begin = begin_of(done) / page_bytes * page_bytes;
    madvise(const_cast<std::byte*>(file_.random()) + begin,
            begin_of(done) + key_bytes - begin, MADV_WILLNEED);
  }
}

}  // namespace attendant
