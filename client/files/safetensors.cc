#include "client/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/half.h"
#include "client/files/json.h"
#include "core/base/status.h"

namespace attendant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::int64_t kMaxHeaderBytes = std::int64_t{16} << 20;
constexpr std::int64_t kSizeBytes = 8;

// Returns the bytes of a component, or nothing if Read does not support the
// dtype.
std::optional<std::int64_t> SizeOf(absl::string_view dtype) {
  if (dtype == "F64") return 8;
  if (dtype == "F32") return 4;
  if (dtype == "F16" || dtype == "BF16") return 2;
  return std::nullopt;
}

template <typename T>
T At(const std::vector<char>& bytes, std::size_t i) {
  T number;
  std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
  return number;
}

double Component(absl::string_view dtype, const std::vector<char>& bytes,
                 std::size_t i) {
  if (dtype == "F64") return At<double>(bytes, i);
  if (dtype == "F32") return At<float>(bytes, i);
  const auto bits = At<std::uint16_t>(bytes, i);
  if (dtype == "F16") return FromHalf(bits);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// True if shape x size is exactly `bytes`. Divides, because the product of an
// arbitrary shape could overflow.
bool IsSize(const std::vector<std::int64_t>& shape, std::int64_t size,
            std::int64_t bytes) {
  for (const std::int64_t count : shape) {
    if (count == 0) return bytes == 0;
  }
  for (const std::int64_t count : shape) {
    if (size > bytes / count) return false;
    size *= count;
  }
  return size == bytes;
}

// Returns a count of the header, or nothing if it is not one.
std::optional<std::int64_t> CountIn(const nlohmann::json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const auto count = json.get<std::uint64_t>();
  if (count > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(count);
}

std::optional<std::vector<std::int64_t>> CountsIn(const nlohmann::json& json,
                                                  const char* member) {
  const auto found = json.find(member);
  if (found == json.end() || !found->is_array()) return std::nullopt;
  std::vector<std::int64_t> counts;
  for (const nlohmann::json& element : *found) {
    const std::optional<std::int64_t> count = CountIn(element);
    if (!count.has_value()) return std::nullopt;
    counts.push_back(*count);
  }
  return counts;
}

// Parses an entry of the header, and converts its offsets to offsets in the
// file, whose `data_bytes` of data begin at data_offset.
absl::StatusOr<SafetensorsFile::Entry> ParseEntry(const nlohmann::json& json,
                                                  std::int64_t data_offset,
                                                  std::int64_t data_bytes) {
  if (!json.is_object()) return absl::InvalidArgumentError("not an object");
  SafetensorsFile::Entry entry;
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) {
    return absl::InvalidArgumentError("its dtype can't be read");
  }
  entry.dtype = dtype->get<std::string>();
  auto shape = CountsIn(json, "shape");
  if (!shape) return absl::InvalidArgumentError("its shape can't be read");
  entry.shape = *std::move(shape);
  const auto offsets = CountsIn(json, "data_offsets");
  if (!offsets || offsets->size() != 2) {
    return absl::InvalidArgumentError("its data_offsets can't be read");
  }
  const std::int64_t begin = (*offsets)[0];
  const std::int64_t end = (*offsets)[1];
  if (begin > end || end > data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got the bytes [", begin, ", ", end, "), want some of ", data_bytes));
  }
  const std::optional<std::int64_t> size = SizeOf(entry.dtype);
  if (size && !IsSize(entry.shape, *size, end - begin)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", end - begin, " bytes, want [",
                     absl::StrJoin(entry.shape, ", "), "] x ", *size));
  }
  entry.begin = data_offset + begin;
  entry.end = data_offset + end;
  return entry;
}

absl::Status TensorError(const std::string& path, const std::string& name,
                         absl::string_view message) {
  return FileError(path, absl::StrCat("tensor ", name, ": ", message));
}

// InvalidArgument if two tensors overlap: no program that saved both writes
// such a header.
absl::Status CheckApart(
    const std::string& path,
    const std::map<std::string, SafetensorsFile::Entry>& tensors) {
  std::vector<std::pair<const std::string, SafetensorsFile::Entry> const*>
      by_place;
  for (const auto& tensor : tensors) {
    if (tensor.second.begin < tensor.second.end) by_place.push_back(&tensor);
  }
  std::ranges::sort(by_place, [](const auto* a, const auto* b) {
    return a->second.begin < b->second.begin;
  });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    const auto& [name, entry] = *by_place[i];
    const auto& [previous_name, previous] = *by_place[i - 1];
    if (entry.begin >= previous.end) continue;
    return TensorError(path, name,
                       absl::StrCat("it shares bytes with ", previous_name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(RandomFile file, RandomFile::Open(path));
  const auto malformed = [&](absl::string_view why) {
    return FileError(path, absl::StrCat("not a .safetensors file: ", why));
  };
  if (file.size() < kSizeBytes) return malformed("it is too short");
  std::uint64_t size = 0;
  ATTENDANT_RETURN_IF_ERROR(
      file.ReadAt(0, {reinterpret_cast<char*>(&size), sizeof(size)}));
  const std::int64_t most = std::min(file.size() - kSizeBytes, kMaxHeaderBytes);
  if (size > static_cast<std::uint64_t>(most)) {
    return malformed(
        absl::StrCat("got a header of ", size, " bytes, want at most ", most));
  }
  std::string text(size, '\0');
  ATTENDANT_RETURN_IF_ERROR(
      file.ReadAt(kSizeBytes, {text.data(), text.size()}));
  const absl::StatusOr<nlohmann::json> header =
      ParseJsonObjectWithUniqueNames(text);
  if (!header.ok()) {
    return malformed(absl::StrCat("its header is ", header.status().message()));
  }
  const std::int64_t data_offset =
      kSizeBytes + static_cast<std::int64_t>(text.size());
  std::map<std::string, Entry> tensors;
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") continue;
    auto entry = ParseEntry(json, data_offset, file.size() - data_offset);
    if (!entry.ok()) return TensorError(path, name, entry.status().message());
    tensors[name] = *std::move(entry);
  }
  ATTENDANT_RETURN_IF_ERROR(CheckApart(path, tensors));
  return SafetensorsFile(std::move(file), std::move(tensors));
}

absl::StatusOr<std::vector<float>> SafetensorsFile::Read(
    const std::string& name) const {
  const Entry& entry = tensors_.at(name);
  const std::optional<std::int64_t> size = SizeOf(entry.dtype);
  if (!size) {
    return TensorError(file_.path(), name,
                       absl::StrCat("got dtype ", entry.dtype,
                                    ", want F32, F16, BF16 or F64"));
  }
  std::vector<char> bytes(static_cast<std::size_t>(entry.end - entry.begin));
  ATTENDANT_RETURN_IF_ERROR(
      file_.ReadAt(entry.begin, {bytes.data(), bytes.size()}));
  std::vector<float> components(bytes.size() / static_cast<std::size_t>(*size));
  for (std::size_t i = 0; i < components.size(); ++i) {
    const double component = Component(entry.dtype, bytes, i);
    // The comparison is false for NaN, too.
    if (!(std::abs(component) <= std::numeric_limits<float>::max())) {
      return TensorError(file_.path(), name,
                         absl::StrCat("component ", i, ": got ", component,
                                      ", want a finite 32-bit float"));
    }
    components[i] = static_cast<float>(component);
  }
  return components;
}

}  // namespace attendant
