// An array of which most elements are never set.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_
#define ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace attendant {

// `size` elements, each a T() until it is set; 64 of them take a pointer until
// one is. One writer sets an element, once, while readers look at others; who
// reads it must have been told of it in a way that synchronises, as of the row
// that it belongs to.
template <typename T>
class SparseArray {
 public:
  explicit SparseArray(std::int64_t size)
      : chunks_(std::make_unique<std::atomic<T*>[]>(
            static_cast<std::size_t>((size + kChunk - 1) / kChunk))),
        memory_bytes_((size + kChunk - 1) / kChunk * std::int64_t{sizeof(T*)}) {
  }

  // Writer only. Throws std::bad_alloc; then nothing has changed.
  void Set(std::int64_t i, T element) {
    std::atomic<T*>& chunk = chunks_[static_cast<std::size_t>(i / kChunk)];
    T* elements = chunk.load(std::memory_order_relaxed);
    if (elements == nullptr) {
      owned_.push_back(std::make_unique<T[]>(kChunk));
      elements = owned_.back().get();
      chunk.store(elements, std::memory_order_release);
      memory_bytes_ += kChunk * std::int64_t{sizeof(T)};
    }
    elements[i % kChunk] = std::move(element);
  }

  const T& operator[](std::int64_t i) const {
    static const T kNone = T();
    const T* elements = chunks_[static_cast<std::size_t>(i / kChunk)].load(
        std::memory_order_acquire);
    return elements == nullptr ? kNone : elements[i % kChunk];
  }

  std::int64_t memory_bytes() const { return memory_bytes_; }  // writer only

 private:
  static constexpr std::int64_t kChunk = 64;

  std::unique_ptr<std::atomic<T*>[]> chunks_;
  std::vector<std::unique_ptr<T[]>> owned_;  // the writer's
  std::int64_t memory_bytes_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_
