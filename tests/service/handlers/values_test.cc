// Values over the wire: pooled values of another modality than keys, and opaque
// values, which are returned unchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/reference.h"

namespace attendant {
namespace {

constexpr int kValueCount = 300;
constexpr int kKeyDim = 64;     // texts
constexpr int kValueDim = 512;  // images
// 2^-24: the relative error of one rounding to float.
constexpr double kEpsilon = 0x1p-24;

// Returns every byte value from 0, then the item's number.
std::string OpaqueBytes(int i) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.push_back(static_cast<char>(byte));
  }
  return absl::StrCat(bytes, i);
}

// A catalog "pictures": keys of 64 components, values of 512, opaque bytes.
class ValuesTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& floats, int size) {
      floats.resize(static_cast<std::size_t>(size));
      for (float& f : floats) f = normal(random);
    };
    fill(query_, kKeyDim);
    fill(keys_, kValueCount * kKeyDim);
    fill(values_, kValueCount * kValueDim);
    CreatePictures();
    Write();
  }

  void CreatePictures() {
    v1::CreateCatalogRequest create;
    create.set_name("pictures");
    v1::CatalogSchema& schema = *create.mutable_schema();
    schema.set_value_dimension(kValueDim);
    v1::KeyField& field = *schema.add_key_fields();
    field.set_name("text");
    field.set_dimension(kKeyDim);
    field.set_score_kind(v1::SCORE_KIND_SCALED_DOT);
    field.set_index_kind(v1::INDEX_KIND_IVF);
    ASSERT_TRUE(Create(create).ok());
  }

  v1::Item ItemOf(int i) const {
    v1::Item item;
    item.set_id(absl::StrCat("p", i));
    SetVector({keys_.data() + i * kKeyDim, kKeyDim},
              &(*item.mutable_keys())["text"]);
    SetVector({values_.data() + i * kValueDim, kValueDim},
              item.mutable_value());
    item.set_opaque_value(OpaqueBytes(i));
    return item;
  }

  void Write() {
    for (int first = 0; first < kValueCount; first += 100) {
      v1::BatchUpsertItemsRequest request;
      request.set_catalog("pictures");
      for (int i = first; i < first + 100; ++i) {
        *request.add_items() = ItemOf(i);
      }
      ASSERT_TRUE(Upsert(request).ok());
    }
  }

  void Rewrite(const v1::Item& item) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("pictures");
    *request.add_items() = item;
    ASSERT_TRUE(Upsert(request).ok());
  }

  // Restarts the server on the same data.
  void Restart() {
    ServerFixture::TearDown();
    ServerFixture::SetUp();
  }

  // Merges everything into one segment with a trained index.
  void Merge() {
    ASSERT_OK_AND_ASSIGN(const auto catalog, catalogs_->Get("pictures"));
    catalog->AwaitIndexes();
    ASSERT_EQ(catalog->snapshot()->segments.size(), 1u);
  }

  v1::AttendRequest Request() const {
    v1::AttendRequest request = Query("pictures", query_);
    request.set_result_count(kValueCount);
    request.set_shortlist_count(kValueCount);
    request.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
    request.set_pool_scope(v1::WEIGHT_SCOPE_CATALOG);
    return request;
  }

  void ExpectOpaqueBytes(const char* when) {
    v1::AttendRequest request = Request();
    request.mutable_read_mask()->add_paths("opaque_value");
    const v1::AttendResponse answer = Answer(request);
    ASSERT_EQ(answer.items_size(), kValueCount);
    for (const v1::AttendedItem& item : answer.items()) {
      EXPECT_EQ(item.opaque_value(),
                OpaqueBytes(std::stoi(item.id().substr(1))))
          << when;
      EXPECT_FALSE(item.has_value());
    }
    v1::BatchGetItemsRequest get;
    get.set_catalog("pictures");
    get.add_ids("p17");
    v1::BatchGetItemsResponse got;
    grpc::ClientContext context;
    ASSERT_TRUE(item_stub_->BatchGetItems(&context, get, &got).ok());
    EXPECT_EQ(got.items(0).opaque_value(), OpaqueBytes(17)) << when;
    v1::ListItemsRequest list;
    list.set_catalog("pictures");
    list.set_page_size(5);
    list.mutable_read_mask()->add_paths("opaque_value");
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(list, &page).ok());
    for (const v1::Item& item : page.items()) {
      EXPECT_EQ(item.opaque_value(),
                OpaqueBytes(std::stoi(item.id().substr(1))))
          << when;
      EXPECT_EQ(item.keys_size(), 0);
    }
  }

  std::vector<float> query_;
  std::vector<float> keys_;
  std::vector<float> values_;
};

TEST_F(ValuesTest, ValuesOfAnotherModalityArePooledByTheKeysWeights) {
  const auto doubles = [](const std::vector<float>& floats) {
    return std::vector<double>(floats.begin(), floats.end());
  };
  const ReferenceMatrix keys = {kValueCount, kKeyDim, doubles(keys_)};
  const ReferenceMatrix values = {kValueCount, kValueDim, doubles(values_)};
  const ReferenceAnswer want =
      AttendReference(doubles(query_), keys, values, ScoreKind::kScaledDot, 1);
  const v1::AttendResponse answer = Answer(Request());

  // A logit is off by the roundings of its dot product, of which there are at
  // most dim + 1 a term, and of its scale; exp makes that relative, adding its
  // own 2^-21 and the gap's rounding. Twice, as the sum is off as well.
  double greatest_magnitude = 0;
  double greatest_gap = 0;
  for (int i = 0; i < kValueCount; ++i) {
    double magnitude = 0;
    for (int d = 0; d < kKeyDim; ++d) {
      magnitude += std::abs(double{query_[d]} * keys_[i * kKeyDim + d]);
    }
    greatest_magnitude = std::max(greatest_magnitude, magnitude);
    greatest_gap = std::max(
        greatest_gap, *std::ranges::max_element(want.logits) - want.logits[i]);
  }
  const double logit_error =
      (kKeyDim + 3) * kEpsilon * greatest_magnitude / std::sqrt(kKeyDim);
  const double weight_error =
      2 * (logit_error + 0x1p-21 + greatest_gap * kEpsilon);
  ASSERT_LT(weight_error, 1e-4);

  ASSERT_EQ(answer.items_size(), kValueCount);
  for (const v1::AttendedItem& item : answer.items()) {
    const auto i = static_cast<std::size_t>(std::stoi(item.id().substr(1)));
    EXPECT_NEAR(item.weight(), want.weights[i], weight_error * want.weights[i]);
  }
  ASSERT_EQ(answer.pooled_value().values_size(), kValueDim);
  EXPECT_EQ(answer.pooled_value().key_as_value_count(), 0);
  for (int d = 0; d < kValueDim; ++d) {
    double magnitude = 0;
    for (int i = 0; i < kValueCount; ++i) {
      magnitude += want.weights[i] * std::abs(values_[i * kValueDim + d]);
    }
    EXPECT_NEAR(answer.pooled_value().values(d), want.pooled[d],
                (weight_error + 2 * kEpsilon) * magnitude);
  }
}

TEST_F(ValuesTest, OpaqueBytesComeBackAsTheyWere) {
  ExpectOpaqueBytes("as written");
  Merge();
  ExpectOpaqueBytes("merged");
  Restart();
  ExpectOpaqueBytes("restarted");
}

TEST_F(ValuesTest, OpaqueBytesComeBackOnlyIfAskedFor) {
  v1::AttendRequest request = Request();
  request.mutable_read_mask()->add_paths("value");
  const v1::AttendResponse answer = Answer(request);
  for (const v1::AttendedItem& item : answer.items()) {
    EXPECT_EQ(item.opaque_value(), "");
    EXPECT_TRUE(item.has_value());
  }
}

TEST_F(ValuesTest, ChangingAValueChangesNoIdAndNoWeight) {
  const v1::AttendResponse before = Answer(Request());
  v1::Item changed = ItemOf(5);
  changed.set_opaque_value("other bytes");
  Rewrite(changed);
  const v1::AttendResponse with_other_bytes = Answer(Request());
  for (float& component :
       *changed.mutable_value()->mutable_floats()->mutable_values()) {
    component += 1000;
  }
  Rewrite(changed);
  const v1::AttendResponse with_other_value = Answer(Request());

  double weight = 0;
  for (const v1::AttendResponse* after :
       {&with_other_bytes, &with_other_value}) {
    ASSERT_EQ(after->items_size(), before.items_size());
    for (int i = 0; i < before.items_size(); ++i) {
      EXPECT_EQ(after->items(i).id(), before.items(i).id());
      EXPECT_EQ(after->items(i).logit(), before.items(i).logit());
      // The row has moved, so that terms are added in another order, eight of
      // them as floats: each sum is off by at most 9 roundings (SumExps).
      EXPECT_NEAR(after->items(i).weight(), before.items(i).weight(),
                  2 * 9 * 0x1p-24 * before.items(i).weight());
      if (after->items(i).id() == "p5") weight = after->items(i).weight();
    }
  }
  // Opaque bytes do not affect sums; the value counts by its weight.
  for (int d = 0; d < kValueDim; ++d) {
    const double pooled = before.pooled_value().values(d);
    EXPECT_NEAR(with_other_bytes.pooled_value().values(d), pooled,
                2 * kEpsilon * std::abs(pooled) + 1e-12);
    EXPECT_NEAR(with_other_value.pooled_value().values(d),
                pooled + 1000 * weight,
                4 * kEpsilon * (std::abs(pooled) + 1000 * weight + 1));
  }
}

TEST_F(ValuesTest, PageEndsBeforeOpaqueBytesOutgrowAMessage) {
  // 300 items of 64 KiB are 18.75 MiB, more than a message.
  for (int i = 0; i < kValueCount; i += 100) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("pictures");
    for (int j = i; j < i + 100; ++j) {
      *request.add_items() = ItemOf(j);
      request.mutable_items(j - i)->set_opaque_value(
          std::string(65536, static_cast<char>(j)));
    }
    ASSERT_TRUE(Upsert(request).ok());
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  item_stub_ = v1::ItemService::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  v1::ListItemsRequest list;
  list.set_catalog("pictures");
  list.set_page_size(1000);
  list.mutable_read_mask()->add_paths("opaque_value");
  int count = 0;
  int page_count = 0;
  do {
    v1::ListItemsResponse page;
    const grpc::Status status = List(list, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const v1::Item& item : page.items()) {
      EXPECT_EQ(item.opaque_value().size(), 65536u);
    }
    count += page.items_size();
    ++page_count;
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(count, kValueCount);
  EXPECT_EQ(page_count, 2);

  v1::AttendRequest request = Request();
  request.mutable_read_mask()->add_paths("opaque_value");
  const grpc::Status status = Attend(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OVER_LIMIT");
  EXPECT_NE(status.error_message().find("read mask"), std::string::npos)
      << status.error_message();
}

}  // namespace
}  // namespace attendant
