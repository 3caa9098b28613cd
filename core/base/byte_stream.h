// Numbers and arrays as bytes of a long file, which nobody holds in memory as a
// whole.
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

// Where bytes go. The first error stays, and what comes after it is dropped:
// look at status() at the end. Not thread-safe.
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
  // Its size, then the elements.
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

// Where they come from. After the first error everything read is 0 or empty:
// look at status() before it is believed. DataLoss if there is less than was
// asked for; nothing is allocated that the bytes left could not fill. Not
// thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  const absl::Status& status() const { return status_; }
  virtual std::uint64_t left() const = 0;
  // The first of the reader's own findings.
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
      // No other byte is a bool.
      const auto byte = Get<std::uint8_t>();
      if (byte > 1) Fail(absl::DataLossError("neither true nor false"));
      return byte == 1;
    }
    T number = {};
    GetBytes(std::as_writable_bytes(std::span(&number, 1)));
    return status_.ok() ? number : T();
  }
  // An array that PutArray wrote, into anything that is made of a size and has
  // data() and size(); prepare(array) sees it before it is filled.
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
  // Not more than left().
  virtual absl::Status Read(std::span<std::byte> bytes) = 0;

  absl::Status status_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_BYTE_STREAM_H_
