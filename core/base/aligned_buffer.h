// A fixed-size array aligned to cache lines.
#ifndef ATTENDANT_CORE_BASE_ALIGNED_BUFFER_H_
#define ATTENDANT_CORE_BASE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace attendant {

// AllocateAligned returns `bytes` uninitialised bytes at a multiple of 64 and
// throws std::bad_alloc when out of memory; FreeAligned frees them, given the
// same `bytes`. For AlignedBuffer. Thread-safe.
void* AllocateAligned(std::size_t bytes);
void FreeAligned(void* data, std::size_t bytes);

// Returns the bytes that AlignedBuffers hold in mappings of their own, touched
// or not. malloc's statistics don't count them.
std::int64_t MappedBufferBytes();

// `size` elements of a trivial type, 64-byte aligned and uninitialised. Pages
// that are never touched cost no memory, so a segment can reserve its capacity.
// A buffer of 2 MiB or more goes back to the system as soon as it is freed.
// Movable, not copyable. Not thread-safe, but different threads may use
// different elements.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial_v<T>);

 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc when out of memory.
  explicit AlignedBuffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    const std::size_t bytes = size * sizeof(T);
    data_ = {static_cast<T*>(AllocateAligned(bytes)), Free{bytes}};
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data(), size_}; }
  std::span<const T> span() const { return {data(), size_}; }

 private:
  struct Free {
    std::size_t bytes = 0;
    void operator()(T* data) const { FreeAligned(data, bytes); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_ALIGNED_BUFFER_H_
