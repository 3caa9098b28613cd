// The stored forms, little-endian. All begin with
//   version u8, checksum u64: XXH3 of all after it, name size u32, name,
//   version of the model i64.
// An entry and a last version end there. A model continues with
//   create time in nanoseconds i64, asymmetry f64 (NaN: none), kind u8:
//   1 multi-head: head count i64, W_Q, W_K, W_V, W_O; each a u8, 0: none, and
//     otherwise its weight and bias;
//   2 bilinear: W; 3 additive: W, U, v.
// A matrix is a row count i64, a column count i64, and its floats; a bias or v
// is a count u64 and its floats.
#include "core/storage/records/model_codec.h"

#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::uint8_t kModelVersion = 1;
constexpr std::size_t kModelHeaderBytes =
    sizeof(kModelVersion) + sizeof(std::uint64_t);

absl::Status DamagedModel(const ModelName& name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("version ", name.version,
                                          " of model \"", name.name,
                                          "\" is damaged: ", what));
}

enum class Kind : std::uint8_t { kMultiHead = 1, kBilinear = 2, kAdditive = 3 };

std::uint64_t Checksum(absl::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

class Writer {
 public:
  explicit Writer(const ModelName& name) : bytes_(kModelHeaderBytes, '\0') {
    Number(static_cast<std::uint32_t>(name.name.size()));
    bytes_.append(name.name);
    Number(name.version);
  }

  template <typename T>
  void Number(T number) {
    AppendNumber(number, bytes_);
  }
  void Put(std::span<const float> floats) {
    bytes_.append(reinterpret_cast<const char*>(floats.data()),
                  floats.size_bytes());
  }
  void Vector(std::span<const float> floats) {
    Number(std::uint64_t{floats.size()});
    Put(floats);
  }
  void Put(const Matrix& matrix) {
    Number(matrix.row_count);
    Number(matrix.column_count);
    Put(std::span<const float>(matrix.data));
  }
  void Put(const Projection* projection) {
    Number(std::uint8_t{projection != nullptr});
    if (projection == nullptr) return;
    Put(projection->weight);
    Vector(projection->bias);
  }
  void Put(Kind kind) { Number(static_cast<std::uint8_t>(kind)); }

  void Put(const MultiHeadProjections& heads) {
    Put(Kind::kMultiHead);
    Number(heads.head_count);
    Put(&heads.query);
    Put(&heads.key);
    Put(heads.value ? &*heads.value : nullptr);
    Put(heads.output ? &*heads.output : nullptr);
  }
  void Put(const BilinearForm& form) {
    Put(Kind::kBilinear);
    Put(form.weight);
  }
  void Put(const AdditiveNetwork& network) {
    Put(Kind::kAdditive);
    Put(network.query_weight);
    Put(network.key_weight);
    Vector(network.output_weight);
  }

  std::string Finish() && {
    bytes_[0] = static_cast<char>(kModelVersion);
    const std::uint64_t checksum =
        Checksum(absl::string_view(bytes_).substr(kModelHeaderBytes));
    std::memcpy(&bytes_[sizeof(kModelVersion)], &checksum, sizeof(checksum));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads what Writer wrote. After a failure ok() stays false.
class Reader {
 public:
  // Checks the header, and that the bytes are for this name and version (0: any
  // version). damage() is then empty.
  Reader(const ModelName& name, absl::string_view bytes) : reader_(bytes) {
    std::uint8_t version = 0;
    std::uint64_t checksum = 0;
    if (!reader_.Read(version) || !reader_.Read(checksum)) {
      damage_ = "it is too short";
    } else if (version != kModelVersion) {
      damage_ =
          absl::StrCat("it has format ", version, ", not ", kModelVersion);
    } else if (checksum != Checksum(bytes.substr(kModelHeaderBytes)) &&
               !ATTENDANT_PLANTED_BUG("skip_model_checksum")) {
      damage_ = "its checksum does not match";
    } else {
      std::string stored;
      std::uint32_t size = 0;
      ok_ = reader_.Read(size) && reader_.ReadText(size, stored) &&
            reader_.Read(version_);
      if (ok_ && (stored != name.name ||
                  (name.version != 0 && version_ != name.version))) {
        damage_ =
            absl::StrCat("it is that of \"", stored, "\" version ", version_);
      }
    }
  }

  // Returns the model's version in the bytes.
  std::int64_t version() const { return version_; }
  // Returns why the bytes are wrong; empty if all of them are right.
  std::string damage() const {
    if (!damage_.empty()) return damage_;
    return ok_ && reader_.left() == 0 ? "" : "its sizes do not add up";
  }

  template <typename T>
  T Number() {
    T number{};
    ok_ = ok_ && reader_.Read(number);
    return number;
  }
  std::vector<float> Vector() {
    const auto count = Number<std::uint64_t>();
    return Floats(count);
  }
  attendant::Matrix Matrix() {
    attendant::Matrix matrix;
    matrix.row_count = Number<std::int64_t>();
    matrix.column_count = Number<std::int64_t>();
    // Checked first, so that the product can't overflow.
    ok_ = ok_ && matrix.row_count >= 1 &&
          matrix.row_count <= kMaxModelDimension && matrix.column_count >= 1 &&
          matrix.column_count <= kMaxModelDimension;
    if (!ok_) return {};
    matrix.data = Floats(
        static_cast<std::uint64_t>(matrix.row_count * matrix.column_count));
    return matrix;
  }
  std::optional<attendant::Projection> Projection() {
    const auto present = Number<std::uint8_t>();
    ok_ = ok_ && present <= 1;
    if (!ok_ || present == 0) return std::nullopt;
    attendant::Projection projection;
    projection.weight = Matrix();
    projection.bias = Vector();
    return projection;
  }
  attendant::Projection RequiredProjection() {
    std::optional<attendant::Projection> projection = Projection();
    ok_ = ok_ && projection.has_value();
    return std::move(projection).value_or(attendant::Projection());
  }

  MultiHeadProjections MultiHead() {
    MultiHeadProjections heads;
    heads.head_count = Number<std::int64_t>();
    heads.query = RequiredProjection();
    heads.key = RequiredProjection();
    heads.value = Projection();
    heads.output = Projection();
    return heads;
  }
  AdditiveNetwork Additive() {
    AdditiveNetwork network;
    network.query_weight = Matrix();
    network.key_weight = Matrix();
    network.output_weight = Vector();
    return network;
  }
  AttentionModel Model() {
    switch (static_cast<Kind>(Number<std::uint8_t>())) {
      case Kind::kMultiHead:
        return {MultiHead()};
      case Kind::kBilinear:
        return {BilinearForm{Matrix()}};
      case Kind::kAdditive:
        return {Additive()};
    }
    ok_ = false;
    return {};
  }

 private:
  std::vector<float> Floats(std::uint64_t count) {
    std::vector<float> floats;
    ok_ = ok_ && reader_.ReadFloats(count, floats);
    return floats;
  }

  ByteReader reader_;
  std::string damage_;
  std::int64_t version_ = 0;
  bool ok_ = false;
};

}  // namespace

std::string EncodeModelKey(const ModelName& name) {
  std::string key = name.name;
  key.push_back('\0');
  AppendSorting(name.version, key);
  return key;
}

ModelName DecodeModelKey(absl::string_view key) {
  constexpr std::size_t kVersionBytes = sizeof(std::int64_t);
  if (key.size() <= kVersionBytes ||
      key[key.size() - kVersionBytes - 1] != '\0') {
    return {std::string(key), 0};
  }
  return {std::string(key.substr(0, key.size() - kVersionBytes - 1)),
          ReadSorting(key.substr(key.size() - kVersionBytes))};
}

std::string EncodeModel(const ModelRecord& record) {
  Writer writer(record.name);
  writer.Number(absl::ToUnixNanos(record.create_time));
  writer.Number(
      record.asymmetry.value_or(std::numeric_limits<double>::quiet_NaN()));
  std::visit([&](const auto& kind) { writer.Put(kind); }, record.model.kind);
  return std::move(writer).Finish();
}

absl::StatusOr<ModelRecord> DecodeModel(const ModelName& name,
                                        absl::string_view bytes) {
  if (name.version < 1) return DamagedModel(name, "its key");
  Reader reader(name, bytes);
  ModelRecord record;
  record.name = name;
  record.create_time = absl::FromUnixNanos(reader.Number<std::int64_t>());
  const auto asymmetry = reader.Number<double>();
  if (!std::isnan(asymmetry)) record.asymmetry = asymmetry;
  record.model = reader.Model();
  if (const std::string why = reader.damage(); !why.empty()) {
    return DamagedModel(name, why);
  }
  const absl::Status valid = ValidateModel(record.model);
  if (!valid.ok()) return DamagedModel(name, valid.message());
  return record;
}

std::string EncodeModelEntry(const ModelName& name) {
  return Writer(name).Finish();
}

absl::Status CheckModelEntry(const ModelName& name, absl::string_view bytes) {
  if (name.version < 1 || !ValidateCatalogName(name.name).ok()) {
    return DamagedModel(name, "its key");
  }
  const std::string why = Reader(name, bytes).damage();
  return why.empty() ? absl::OkStatus() : DamagedModel(name, why);
}

std::string EncodeLastVersion(const ModelName& last) {
  return Writer(last).Finish();
}

absl::StatusOr<std::int64_t> DecodeLastVersion(absl::string_view name,
                                               absl::string_view bytes) {
  const Reader reader({std::string(name), 0}, bytes);
  std::string why = reader.damage();
  if (why.empty() && reader.version() < 1) why = "it is below 1";
  if (why.empty()) return reader.version();
  return absl::DataLossError(absl::StrCat("the last version of model \"", name,
                                          "\" is damaged: ", why));
}

}  // namespace attendant
