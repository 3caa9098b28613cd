#include "client/files/npy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/files/half.h"
#include "core/base/status.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr std::int64_t kMaxHeaderBytes = 1 << 16;
constexpr std::size_t kAlignment = 64;

// Parses a Python literal from the front of a text.
class LiteralParser {
 public:
  explicit LiteralParser(absl::string_view text) : text_(text) {}

  // Takes `token`, after white space, if it is next.
  bool Take(absl::string_view token) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return absl::ConsumePrefix(&text_, token);
  }

  std::optional<std::string> TakeString() {
    for (const absl::string_view quote : {"'", "\""}) {
      if (!Take(quote)) continue;
      const std::size_t end = text_.find(quote);
      if (end == absl::string_view::npos) return std::nullopt;
      std::string value(text_.substr(0, end));
      text_.remove_prefix(end + 1);
      return value;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> TakeCount() {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    std::size_t end = 0;
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    std::int64_t count = 0;
    if (!absl::SimpleAtoi(text_.substr(0, end), &count)) return std::nullopt;
    text_.remove_prefix(end);
    return count;
  }

  std::optional<std::vector<std::int64_t>> TakeShape() {
    if (!Take("(")) return std::nullopt;
    std::vector<std::int64_t> shape;
    while (!Take(")")) {
      const std::optional<std::int64_t> count = TakeCount();
      if (!count.has_value()) return std::nullopt;
      shape.push_back(*count);
      if (Take(",")) continue;
      if (!Take(")")) return std::nullopt;
      break;
    }
    return shape;
  }

  bool AtEnd() { return absl::StripLeadingAsciiWhitespace(text_).empty(); }

 private:
  absl::string_view text_;
};

// Returns the number as a float, infinite if it is too large for one.
float ToFloat(float number) { return number; }
float ToFloat(double number) {
  // Converting a number out of range is undefined.
  constexpr double kMax = std::numeric_limits<float>::max();
  if (std::abs(number) > kMax) {
    return number < 0 ? -INFINITY : INFINITY;
  }
  return static_cast<float>(number);
}
float ToFloat(std::uint16_t half) { return FromHalf(half); }

// Rows of T in C order; std::uint16_t stands for binary16.
template <typename T>
class NpyFile : public FixedRowFile {
 public:
  NpyFile(RandomFile file, std::int64_t data_offset, std::int64_t row_count,
          std::int64_t dim)
      : FixedRowFile(std::move(file), data_offset,
                     dim * static_cast<std::int64_t>(sizeof(T)), row_count,
                     dim) {}

 private:
  absl::Status Decode(std::int64_t /*row*/, std::span<const char> bytes,
                      std::span<float> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      T number;
      std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
      out[i] = ToFloat(number);
    }
    return absl::OkStatus();
  }
};

// Returns the bytes of a number of this dtype; 0 if the dtype is not supported.
std::int64_t SizeOf(absl::string_view descr) {
  if (descr == "<f4") return 4;
  if (descr == "<f2") return 2;
  if (descr == "<f8") return 8;
  return 0;
}

// The position of the data, and the text of the description.
struct Header {
  std::int64_t data_offset = 0;
  std::string text;
};

absl::StatusOr<Header> ReadHeader(const RandomFile& file) {
  const auto not_npy = [&](absl::string_view why) {
    return FileError(file.path(), absl::StrCat("not an .npy file: ", why));
  };
  // Magic bytes, version, and the header length: 2 bytes in version 1, 4 in
  // later versions.
  unsigned char prefix[12] = {};
  const std::int64_t prefix_bytes =
      std::min<std::int64_t>(sizeof(prefix), file.size());
  ATTENDANT_RETURN_IF_ERROR(
      file.ReadAt(0, {reinterpret_cast<char*>(prefix),
                      static_cast<std::size_t>(prefix_bytes)}));
  if (prefix_bytes < 10 ||
      std::memcmp(prefix, kMagic.data(), kMagic.size()) != 0) {
    return not_npy("the magic bytes are missing");
  }
  const int version = prefix[6];
  if (version < 1 || version > 3) {
    return not_npy(absl::StrCat("got version ", version, ", want 1, 2 or 3"));
  }
  std::int64_t length = prefix[8] + (prefix[9] << 8);
  Header header;
  header.data_offset = 10;
  if (version > 1) {
    if (prefix_bytes < 12) return not_npy("the header is cut off");
    length +=
        (std::int64_t{prefix[10]} << 16) + (std::int64_t{prefix[11]} << 24);
    header.data_offset = 12;
  }
  if (length > kMaxHeaderBytes) {
    return not_npy(absl::StrCat("got a header of ", length,
                                " bytes, want at most ", kMaxHeaderBytes));
  }
  if (length > file.size() - header.data_offset) {
    return not_npy("the header is cut off");
  }
  header.text.resize(static_cast<std::size_t>(length));
  ATTENDANT_RETURN_IF_ERROR(file.ReadAt(
      header.data_offset, {header.text.data(), header.text.size()}));
  header.data_offset += length;
  return header;
}

std::string HeaderBytes(absl::string_view descr, absl::string_view shape) {
  std::string text =
      absl::StrCat("{'descr': '", descr,
                   "', 'fortran_order': False, 'shape': (", shape, "), }");
  const std::size_t prefix_bytes = kMagic.size() + 4;
  const std::size_t unpadded = prefix_bytes + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  std::string bytes(kMagic);
  bytes.push_back('\x01');
  bytes.push_back('\x00');
  bytes.push_back(static_cast<char>(text.size() & 0xff));
  bytes.push_back(static_cast<char>(text.size() >> 8));
  return bytes + text;
}

template <typename T>
void AppendBytes(std::span<const T> values, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(values.data()),
               values.size_bytes());
}

}  // namespace

absl::StatusOr<NpyDescription> ParseNpyDescription(absl::string_view text) {
  const auto malformed = [](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header's ", what, " can't be read"));
  };
  LiteralParser parser(text);
  NpyDescription description;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  if (!parser.Take("{")) return malformed("start");
  while (!parser.Take("}")) {
    const std::optional<std::string> name = parser.TakeString();
    if (!name.has_value() || !parser.Take(":")) return malformed("next field");
    if (*name == "descr" && !has_descr) {
      // A list would describe records, which are not supported.
      auto descr = parser.TakeString();
      if (!descr.has_value()) return malformed("'descr'");
      description.descr = *std::move(descr);
      has_descr = true;
    } else if (*name == "fortran_order" && !has_order) {
      description.fortran_order = parser.Take("True");
      if (!description.fortran_order && !parser.Take("False")) {
        return malformed("'fortran_order'");
      }
      has_order = true;
    } else if (*name == "shape" && !has_shape) {
      auto shape = parser.TakeShape();
      if (!shape.has_value()) return malformed("'shape'");
      description.shape = *std::move(shape);
      has_shape = true;
    } else {
      return malformed(absl::StrCat("field '", *name, "'"));
    }
    if (parser.Take(",")) continue;
    if (!parser.Take("}")) return malformed("end");
    break;
  }
  if (!parser.AtEnd()) return malformed("end");
  if (!has_descr) return malformed("'descr'");
  if (!has_order) return malformed("'fortran_order'");
  if (!has_shape) return malformed("'shape'");
  return description;
}

absl::StatusOr<std::unique_ptr<VectorFile>> OpenNpy(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(RandomFile file, RandomFile::Open(path));
  ATTENDANT_ASSIGN_OR_RETURN(const Header header, ReadHeader(file));
  auto description = ParseNpyDescription(header.text);
  if (!description.ok()) {
    return FileError(path, description.status().message());
  }
  const std::vector<std::int64_t>& shape = description->shape;
  const std::int64_t size = SizeOf(description->descr);
  if (size == 0) {
    return FileError(path, absl::StrCat("got dtype '", description->descr,
                                        "', want '<f4', '<f2' or '<f8': save "
                                        "array.astype('float32')"));
  }
  if (shape.empty() || shape.size() > 2) {
    return FileError(
        path, absl::StrCat("got ", shape.size(), " dimensions, want 1 or 2"));
  }
  if (description->fortran_order && shape.size() == 2) {
    return FileError(path,
                     "got Fortran order, want C order: save "
                     "numpy.ascontiguousarray(...)");
  }
  const std::int64_t row_count = shape.size() == 1 ? 1 : shape[0];
  const std::int64_t dim = shape.back();
  if (dim < 1 || dim > kMaxFileDim) {
    return FileError(
        path, absl::StrCat("got rows of ", dim, " components, want 1 to ",
                           kMaxFileDim));
  }
  const std::int64_t data_bytes = file.size() - header.data_offset;
  // Divides, because the product of an arbitrary shape could overflow.
  if (row_count > data_bytes / (dim * size) ||
      row_count * dim * size != data_bytes) {
    return FileError(path,
                     absl::StrCat("got ", data_bytes, " bytes of data, want (",
                                  absl::StrJoin(shape, ", "), ") x ", size));
  }
  const auto open = [&](auto number) {
    return std::unique_ptr<VectorFile>(new NpyFile<decltype(number)>(
        std::move(file), header.data_offset, row_count, dim));
  };
  if (size == sizeof(double)) return open(double{});
  if (size == sizeof(float)) return open(float{});
  return open(std::uint16_t{});
}

std::string NpyBytes(std::span<const float> values, std::int64_t dim) {
  const std::int64_t row_count = static_cast<std::int64_t>(values.size()) / dim;
  std::string bytes = HeaderBytes("<f4", absl::StrCat(row_count, ", ", dim));
  AppendBytes(values, bytes);
  return bytes;
}

std::string NpyBytes(std::span<const double> values) {
  std::string bytes = HeaderBytes("<f8", absl::StrCat(values.size(), ","));
  AppendBytes(values, bytes);
  return bytes;
}

}  // namespace attendant
