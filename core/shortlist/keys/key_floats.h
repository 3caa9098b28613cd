// The fp32 keys of an index: in memory, or in a file. Internal.
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

  // Keys [count, dim], of which key_at(p) is asked for in order. files: null
  // for memory. Errors of ScratchFiles; throws std::bad_alloc.
  static absl::StatusOr<KeyFloats> Gather(
      std::int64_t count, std::int64_t dim, ScratchFiles* files,
      absl::FunctionRef<std::span<const float>(std::int64_t position)> key_at);

  // What Save wrote of keys [count, dim]. `files` and errors as of Gather;
  // where the source fails, what is read is empty.
  static absl::StatusOr<KeyFloats> Load(ByteSource& source, std::int64_t count,
                                        std::int64_t dim, ScratchFiles* files);
  void Save(ByteSink& sink, std::int64_t count, std::int64_t dim) const {
    sink.PutBytes(std::as_bytes(
        std::span(runs(), static_cast<std::size_t>(count * dim))));
  }

  // For single keys in any order, and for runs of many: the same floats, which
  // a file reads in another way.
  const float* data() const {
    return on_disk() ? Floats(file_.random()) : memory_.data();
  }
  const float* runs() const {
    return on_disk() ? Floats(file_.sequential()) : memory_.data();
  }
  bool on_disk() const { return file_.size() > 0; }

  // Before single keys are read. In memory it does nothing. Of a file that the
  // kernel has let go of, it reads the pages of all of them at once, in place
  // of one after the other; what is in memory takes no more than a look.
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
