// The fp32 keys of an index, in memory or in a file. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_KEY_FLOATS_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_KEY_FLOATS_H_

#include <cstdint>
#include <span>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/aligned_buffer.h"
#include "core/base/byte_stream.h"
#include "core/base/scratch_files.h"

namespace attendant {

// Immutable. Movable, not copyable. Thread-safe.
class KeyFloats {
 public:
  KeyFloats() = default;
  explicit KeyFloats(AlignedBuffer<float> memory)
      : memory_(std::move(memory)) {}

  // Gathers keys [count, dim]; calls key_at(p) for ascending p. `files` is null
  // for memory. Errors as ScratchFiles; throws std::bad_alloc.
  static absl::StatusOr<KeyFloats> Gather(
      std::int64_t count, std::int64_t dim, ScratchFiles* files,
      absl::FunctionRef<std::span<const float>(std::int64_t position)> key_at);

  // Reads keys [count, dim] that Save wrote. `files` and errors as for Gather.
  // If the source fails, returns empty floats.
  static absl::StatusOr<KeyFloats> Load(ByteSource& source, std::int64_t count,
                                        std::int64_t dim, ScratchFiles* files);
  void Save(ByteSink& sink, std::int64_t count, std::int64_t dim) const {
    sink.PutBytes(std::as_bytes(
        std::span(runs(), static_cast<std::size_t>(count * dim))));
  }

  // data() is for single keys in any order, runs() for runs of many keys. The
  // floats are the same; only the access pattern that a file is mapped for
  // differs.
  const float* data() const {
    return on_disk() ? Floats(file_.random()) : memory_.data();
  }
  const float* runs() const {
    return on_disk() ? Floats(file_.sequential()) : memory_.data();
  }
  bool on_disk() const { return file_.size() > 0; }

  // To be called before single keys are read. Does nothing in memory. For a
  // file whose pages the kernel has evicted, reads the pages of all `positions`
  // at once instead of one after the other; pages in memory cost only a check.
  void Await(std::span<const std::int32_t> positions, std::int64_t dim) const {
    if (on_disk()) AwaitPages(positions, dim);
  }

 private:
  static const float* Floats(const std::byte* bytes) {
    return reinterpret_cast<const float*>(bytes);
  }
  void AwaitPages(std::span<const std::int32_t> positions,
                  std::int64_t dim) const;

  AlignedBuffer<float> memory_;
  FileMapping file_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_KEY_FLOATS_H_
