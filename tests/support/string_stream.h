// Streams of bytes into and out of a string.
#ifndef ATTENDANT_TESTS_SUPPORT_STRING_STREAM_H_
#define ATTENDANT_TESTS_SUPPORT_STRING_STREAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/byte_stream.h"

namespace attendant {

class StringSink : public ByteSink {
 public:
  std::string bytes;

 private:
  absl::Status Append(std::span<const std::byte> more) override {
    bytes.append(reinterpret_cast<const char*>(more.data()), more.size());
    return absl::OkStatus();
  }
};

class StringSource : public ByteSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t left() const override { return bytes_.size(); }

 private:
  absl::Status Read(std::span<std::byte> bytes) override {
    std::copy_n(bytes_.data(), bytes.size(),
                reinterpret_cast<char*>(bytes.data()));
    bytes_.erase(0, bytes.size());
    return absl::OkStatus();
  }

  std::string bytes_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_STRING_STREAM_H_
