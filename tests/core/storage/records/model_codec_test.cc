#include "core/storage/records/model_codec.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "tests/support/random_model.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using std::string_literals::operator""s;

ModelRecord Record(AttentionModel model,
                   std::optional<double> asymmetry = std::nullopt) {
  return {{"text", 3},
          absl::FromUnixNanos(1700000000123456789),
          asymmetry,
          std::move(model)};
}

std::vector<ModelRecord> Records() {
  AttentionModel plain = RandomMultiHeadModel(4);
  auto& heads = std::get<MultiHeadProjections>(plain.kind);
  heads.value.reset();
  heads.output.reset();
  heads.key.bias.clear();
  return {Record(RandomMultiHeadModel(1)), Record(plain, 0.25),
          Record(RandomBilinearModel(2), 0.0), Record(RandomAdditiveModel(3))};
}

// Decodes bytes in a heap block of their exact size, so that the address
// sanitizer sees a read past the end.
absl::StatusOr<ModelRecord> DecodeExactly(const std::string& bytes) {
  const std::unique_ptr<char[]> copy(new char[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return DecodeModel({"text", 3}, absl::string_view(copy.get(), bytes.size()));
}

// Appends a valid checksum, so that the rest is decoded.
std::string WithChecksum(std::string bytes) {
  constexpr std::size_t kHeader = 9;
  const std::uint64_t checksum =
      XXH3_64bits(bytes.data() + kHeader, bytes.size() - kHeader);
  std::memcpy(&bytes[1], &checksum, sizeof(checksum));
  return bytes;
}

TEST(ModelCodecTest, DecodesWhatItEncoded) {
  for (const ModelRecord& record : Records()) {
    ASSERT_OK_AND_ASSIGN(const ModelRecord decoded,
                         DecodeExactly(EncodeModel(record)));
    EXPECT_EQ(decoded, record);
  }
}

// The stored form of version 1, byte by byte: changing it requires a new
// version.
TEST(ModelCodecTest, BytesOfVersionOneAreFixed) {
  ModelRecord record = Record({BilinearForm{{1, 2, {1, -2}}}}, 0.5);
  record.create_time = absl::FromUnixNanos(258);
  const std::string bytes = EncodeModel(record);
  EXPECT_EQ(bytes.substr(0, 1), "\1"s);  // version; then the checksum
  EXPECT_EQ(bytes.substr(9),
            "\4\0\0\0text"               // name
            "\3\0\0\0\0\0\0\0"           // version of the model
            "\2\1\0\0\0\0\0\0"           // create time
            "\0\0\0\0\0\0\xe0\x3f"       // asymmetry
            "\2"                         // bilinear
            "\1\0\0\0\0\0\0\0"           // rows
            "\2\0\0\0\0\0\0\0"           // columns
            "\0\0\x80\x3f\0\0\0\xc0"s);  // 1, -2
}

TEST(ModelCodecTest, EveryTruncationIsDataLoss) {
  for (const ModelRecord& record : Records()) {
    const std::string bytes = EncodeModel(record);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::string part = bytes.substr(0, size);
      EXPECT_THAT(DecodeExactly(part),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"text\"")));
      if (size < 9) continue;
      EXPECT_THAT(DecodeExactly(WithChecksum(part)),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"text\"")));
    }
    EXPECT_THAT(DecodeExactly(WithChecksum(bytes + '\0')),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("its sizes do not add up")));
  }
}

TEST(ModelCodecTest, EveryChangedByteIsFound) {
  for (const ModelRecord& record : Records()) {
    const std::string bytes = EncodeModel(record);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const int mask : {0x01, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ mask);
        EXPECT_THAT(DecodeExactly(changed),
                    StatusIs(absl::StatusCode::kDataLoss, HasSubstr("")))
            << i;
      }
    }
  }
}

// With a valid checksum, changed bytes are refused or yield another valid
// model. A false count allocates nothing.
TEST(ModelCodecTest, NoChangedByteIsMisread) {
  int refused = 0;
  for (const ModelRecord& record : Records()) {
    const std::string bytes = EncodeModel(record);
    for (std::size_t i = 9; i < bytes.size(); ++i) {
      for (const int value : {0, 1, 2, 3, 0x7f, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(value);
        changed = WithChecksum(std::move(changed));
        const absl::StatusOr<ModelRecord> decoded = DecodeExactly(changed);
        if (decoded.ok()) {
          EXPECT_OK(ValidateModel(decoded->model));
          // Every NaN encodes a missing asymmetry.
          if (decoded->asymmetry.has_value() == record.asymmetry.has_value()) {
            ASSERT_OK_AND_ASSIGN(const ModelRecord again,
                                 DecodeExactly(EncodeModel(*decoded)));
            EXPECT_EQ(again, *decoded);
          }
        } else {
          EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(ModelCodecTest, AnotherFormatIsNamed) {
  std::string bytes = EncodeModel(Records()[0]);
  bytes[0] = 2;
  EXPECT_THAT(DecodeExactly(bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("it has format 2, not 1")));
}

TEST(ModelCodecTest, RecordOfAnotherModelIsRefused) {
  const std::string bytes = EncodeModel(Records()[0]);
  for (const ModelName& name : {ModelName{"text", 4}, ModelName{"other", 3}}) {
    EXPECT_THAT(DecodeModel(name, bytes),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(name.name),
                               HasSubstr("that of \"text\" version 3"))));
  }
}

TEST(ModelCodecTest, KeysSortByNameAndVersion) {
  const std::vector<ModelName> names = {
      {"a", 1},         {"a", 2},   {"a", 255}, {"a", 256},
      {"a", 1LL << 40}, {"a-b", 1}, {"a1", 1},  {"b", 1}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string key = EncodeModelKey(names[i]);
    EXPECT_EQ(DecodeModelKey(key), names[i]);
    if (i > 0) {
      EXPECT_LT(EncodeModelKey(names[i - 1]), key);
    }
  }
  for (const std::string key : {"", "a", "long enough, but no version"}) {
    EXPECT_EQ(DecodeModelKey(key), (ModelName{key, 0}));
  }
}

TEST(ModelCodecTest, LastVersionIsCheckedAlike) {
  const std::string bytes = EncodeLastVersion({"text", 300});
  EXPECT_THAT(DecodeLastVersion("text", bytes), ::attendant::IsOk());
  EXPECT_EQ(*DecodeLastVersion("text", bytes), 300);
  EXPECT_THAT(DecodeLastVersion("other", bytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("other")));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(DecodeLastVersion("text", bytes.substr(0, i)).status().code(),
              absl::StatusCode::kDataLoss);
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    EXPECT_EQ(DecodeLastVersion("text", changed).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST(ModelCodecTest, EntryIsCheckedAlike) {
  const ModelName name = {"text", 300};
  const std::string bytes = EncodeModelEntry(name);
  EXPECT_OK(CheckModelEntry(name, bytes));
  for (const ModelName& other :
       {ModelName{"text", 301}, {"other", 300}, {"text", 0}, {"../text", 1}}) {
    EXPECT_THAT(CheckModelEntry(other, bytes),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(other.name)));
  }
  // A name that is not allowed in a path is refused even in an intact entry.
  EXPECT_THAT(CheckModelEntry({"../text", 1}, EncodeModelEntry({"../text", 1})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its key")));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(CheckModelEntry(name, bytes.substr(0, i)).code(),
              absl::StatusCode::kDataLoss);
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    EXPECT_EQ(CheckModelEntry(name, changed).code(),
              absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace attendant
