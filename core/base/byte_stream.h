// Writes and reads numbers and arrays in a long file without holding all of it
// in memory.
#ifndef ATTENDANT_CORE_BASE_BYTE_STREAM_H_
#define ATTENDANT_CORE_BASE_BYTE_STREAM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

// Accepts bytes. Keeps the first error and drops everything put after it: check
// status() at the end. Not thread-safe.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  const absl::Status& status() const { return status_; }

  void PutBytes(std::span<const std::byte> bytes) {
    if (status_.ok() && !bytes.empty()) status_ = Append(bytes);
  }
  template <typename T>
  void Put(const T& number) {
    static_assert(std::is_trivially_copyable_v<T>);
    PutBytes(std::as_bytes(std::span(&number, 1)));
  }
  // Puts the size of `array`, then its elements.
  template <typename T>
  void PutArray(std::span<const T> array) {
    static_assert(std::is_trivially_copyable_v<T>);
    Put(static_cast<std::uint64_t>(array.size()));
    PutBytes(std::as_bytes(array));
  }
  void PutText(absl::string_view text) {
    PutArray(std::span(text.data(), text.size()));
  }

 private:
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;

  absl::Status status_;
};

// Supplies bytes. After the first error everything read is 0 or empty: check
// status() before using it. The status is DataLoss if fewer bytes are left than
// were asked for. Never allocates more than the bytes left could fill. Not
// thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  const absl::Status& status() const { return status_; }
  virtual std::uint64_t left() const = 0;
  // Records an error that the reader found in the data, unless there is one
  // already.
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  void GetBytes(std::span<std::byte> bytes) {
    if (!status_.ok() || bytes.empty()) return;
    if (bytes.size() > left()) {
      Fail(absl::DataLossError("it ends too early"));
      return;
    }
    Fail(Read(bytes));
  }
  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    if constexpr (std::is_same_v<T, bool>) {
      // A bool may hold no byte but 0 and 1.
      const auto byte = Get<std::uint8_t>();
      if (byte > 1) Fail(absl::DataLossError("neither true nor false"));
      return byte == 1;
    }
    T number = {};
    GetBytes(std::as_writable_bytes(std::span(&number, 1)));
    return status_.ok() ? number : T();
  }
  // Reads an array that PutArray wrote into an `Array`, any type with a
  // constructor from a size, data() and size(). Calls prepare(array) before it
  // fills the array.
  template <typename Array>
  Array GetArray() {
    return GetArray<Array>([](const Array&) {});
  }
  template <typename Array, typename Prepare>
  Array GetArray(Prepare prepare) {
    using T = std::remove_reference_t<decltype(*std::declval<Array>().data())>;
    static_assert(std::is_trivially_copyable_v<T>);
    const auto size = Get<std::uint64_t>();
    if (size > left() / sizeof(T)) {
      Fail(absl::DataLossError("an array is longer than what is left"));
      return {};
    }
    Array array(static_cast<std::size_t>(size));
    prepare(array);
    GetBytes(std::as_writable_bytes(std::span(array.data(), array.size())));
    return array;
  }
  std::string GetText() {
    const auto size = Get<std::uint64_t>();
    if (size > left()) {
      Fail(absl::DataLossError("a text is longer than what is left"));
      return {};
    }
    std::string text(static_cast<std::size_t>(size), '\0');
    GetBytes(std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
  }

 private:
  // Reads bytes.size() bytes, at most left().
  virtual absl::Status Read(std::span<std::byte> bytes) = 0;

  absl::Status status_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BYTE_STREAM_H_
