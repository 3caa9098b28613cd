// An array in which most elements are never set.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_
#define ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace attendant {

// `size` elements, each equal to T() until it is set; 64 unset elements take
// one pointer. One writer sets each element at most once while readers read
// others. A reader of an element must have learned of it with synchronisation,
// for example from the publication of its row.
template <typename T>
class SparseArray {
 public:
  explicit SparseArray(std::int64_t size)
      : chunks_(std::make_unique<std::atomic<T*>[]>(
            static_cast<std::size_t>((size + kChunk - 1) / kChunk))),
        memory_bytes_((size + kChunk - 1) / kChunk * std::int64_t{sizeof(T*)}) {
  }

  // Writer only. Throws std::bad_alloc and then changes nothing.
  void Set(std::int64_t i, T element) {
    std::atomic<T*>& chunk = chunks_[i / kChunk];
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
    const T* elements = chunks_[i / kChunk].load(std::memory_order_acquire);
    return elements == nullptr ? kNone : elements[i % kChunk];
  }

  std::int64_t memory_bytes() const { return memory_bytes_; }  // writer only

 private:
  static constexpr std::int64_t kChunk = 64;

  std::unique_ptr<std::atomic<T*>[]> chunks_;
  std::vector<std::unique_ptr<T[]>> owned_;  // writer only
  std::int64_t memory_bytes_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_SPARSE_ARRAY_H_
