// Readers query while a writer changes every item and indexes are swapped: no
// answer may show half a write.
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

class LiveCatalogStressTest : public CatalogFixture {
 protected:
  // Expects both items of each pair, of equal logit: those of the greatest
  // logits there are, from answers that are exact. Of the items that tie with
  // the last one, some may be cut off.
  static void ExpectWholePairs(const Snapshot& snapshot,
                               const AttendAnswer& answer) {
    std::map<std::string, float> logits;
    for (const AttendedItem& item : answer.items) {
      const float place = snapshot.KeyOf(item.address, 0)[0];
      ASSERT_EQ(item.logit, place);
      logits[std::string(
          snapshot.IdOf(item.address.segment, item.address.row))] = place;
    }
    ASSERT_EQ(logits.size(), answer.items.size());
    for (const auto& [id, logit] : logits) {
      if (logit == answer.items.back().logit) continue;
      const auto twin = logits.find((id[0] == 'a' ? "b" : "a") + id.substr(1));
      ASSERT_NE(twin, logits.end()) << id << " is alone";
      ASSERT_EQ(twin->second, logit) << id;
    }
  }
};

TEST_F(LiveCatalogStressTest, ReadersNeverSeeHalfAWrite) {
  // Every write moves both items of a pair to the same place, so both have the
  // same key in any consistent state.
  constexpr int kPairs = 200;
  constexpr int kWrites = 3000;
  CatalogSchema schema = OneFieldSchema(2);
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  LiveCatalogOptions options;
  options.settle_time = absl::ZeroDuration();
  OpenCatalog(schema, options);
  const auto pair = [](int i, float place) {
    return std::vector<Item>{MakeItem("a" + std::to_string(i), {place, 1}),
                             MakeItem("b" + std::to_string(i), {place, 1})};
  };
  for (int i = 0; i < kPairs; ++i) Upsert(pair(i, 0));

  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> answers = 0;
  std::atomic<int> reader_count = 3;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      // Runs even if an assertion ends the reader.
      const absl::Cleanup done = [&reader_count] { --reader_count; };
      int i = reader;
      for (int turn = 0; !stop; ++turn) {
        i = (i + 7) % kPairs;
        const auto snapshot = catalog_->snapshot();
        ASSERT_EQ(snapshot->item_count(), 2 * kPairs);
        const auto a = snapshot->Find("a" + std::to_string(i));
        const auto b = snapshot->Find("b" + std::to_string(i));
        ASSERT_TRUE(a.has_value());
        ASSERT_TRUE(b.has_value());
        ASSERT_EQ(snapshot->KeyOf(*a, 0)[0], snapshot->KeyOf(*b, 0)[0]);
        AttendQuery query = VectorQuery({1, 0});
        query.scan_mode = turn % 2 == 0 ? ScanMode::kExact : ScanMode::kAuto;
        const auto answer = Attend(*snapshot, query, Interrupt());
        ASSERT_OK(answer);
        if (query.scan_mode == ScanMode::kExact) {
          ASSERT_EQ(answer->scored_count, 2 * kPairs);
          ASSERT_TRUE(answer->results_exact);
        }
        ASSERT_EQ(answer->items.size(), 10);
        if (answer->results_exact) ExpectWholePairs(*snapshot, *answer);
        ++answers;
      }
    });
  }
  std::mt19937 random(1);
  for (int write = 0; write < kWrites; ++write) {
    Upsert(
        pair(static_cast<int>(random() % kPairs), static_cast<float>(write)));
  }
  while (answers < 100 && reader_count > 0) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  catalog_->AwaitIndexes();
  EXPECT_OK(catalog_->merge_status());
  EXPECT_EQ(catalog_->snapshot()->item_count(), 2 * kPairs);
}

}  // namespace
}  // namespace attendant
