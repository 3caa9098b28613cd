// Queries that share passes: each answer has the same bytes as alone.
#include <atomic>
#include <bit>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/core/catalog/catalog_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// Everything in an answer except shared_query_count, to the bit.
class Transcript {
 public:
  explicit Transcript(const AttendAnswer& answer) {
    for (const AttendedItem& item : answer.items) {
      Say(item.address.segment, item.address.row, item.weight, item.logit,
          item.similarity, item.log_weight, item.log_inclusion_given_threshold,
          item.head, item.head_weights);
    }
    if (answer.pooled_value) {
      const PooledValue& pooled = *answer.pooled_value;
      Say(pooled.values, static_cast<int>(pooled.scope),
          pooled.key_as_value_count, static_cast<int>(pooled.method),
          pooled.relative_error);
    }
    Say(static_cast<int>(answer.weight_scope), answer.returned_mass,
        answer.shortlist_mass, answer.log_partition,
        answer.log_partition_interval, answer.entropy, answer.entropy_interval,
        answer.effective_item_count, answer.effective_item_count_interval,
        answer.temperature, static_cast<int>(answer.score_kind),
        answer.key_field, answer.scored_count, answer.projected_key_count,
        answer.projected_query_count, answer.eligible_count,
        answer.visited_list_count, answer.complete, answer.results_exact,
        static_cast<int>(answer.index_kind),
        static_cast<int>(answer.limit_reason));
    for (const ItemId& id : answer.unknown_example_ids) Say(id);
    for (const HeadAnswer& head : answer.heads) {
      Say(head.key_field, head.temperature, head.log_partition,
          head.log_partition_interval, head.entropy, head.entropy_interval,
          head.effective_item_count, head.effective_item_count_interval,
          head.returned_mass, head.shortlist_mass, head.output);
    }
    if (answer.slate) {
      const SlateAnswer& slate = *answer.slate;
      Say(slate.seed, slate.log_probability, slate.kappa, slate.distance);
    }
  }

  const std::string& text() const { return text_; }

 private:
  template <typename... Parts>
  void Say(const Parts&... parts) {
    (Add(parts), ...);
  }
  void Add(double part) {
    absl::StrAppend(&text_, absl::Hex(std::bit_cast<std::uint64_t>(part)), " ");
  }
  void Add(float part) { Add(double{part}); }
  void Add(bool part) { absl::StrAppend(&text_, part, " "); }
  void Add(int part) { absl::StrAppend(&text_, part, " "); }
  void Add(std::int64_t part) { absl::StrAppend(&text_, part, " "); }
  void Add(const std::string& part) { absl::StrAppend(&text_, part, " "); }
  void Add(const Mass& mass) {
    Say(static_cast<int>(mass.method), mass.value, mass.lower_bound,
        mass.upper_bound);
  }
  void Add(const Interval& interval) {
    Say(static_cast<int>(interval.method), interval.lower_bound,
        interval.upper_bound);
  }
  template <typename T>
  void Add(const std::optional<T>& part) {
    if (part) {
      Add(*part);
    } else {
      absl::StrAppend(&text_, "- ");
    }
  }
  template <typename T>
  void Add(const std::vector<T>& parts) {
    for (const T& part : parts) Add(part);
  }

  std::string text_;
};

std::string TranscriptOf(const absl::StatusOr<AttendAnswer>& answer) {
  if (answer.ok()) return Transcript(*answer).text();
  // Attached payloads come in any order.
  return answer.status().ToString(absl::StatusToStringMode::kWithNoExtraData);
}

class AttendTogetherTest : public CatalogFixture {
 protected:
  static constexpr int kCount = 3000;
  static constexpr int kDim = 8;

  // Opens two key fields, one with lists, in a sealed and a growing segment.
  void Open() {
    CatalogSchema schema = OneFieldSchema(kDim);
    schema.key_fields[0].index_kind = IndexKind::kIvf;
    KeyFieldSchema other = schema.key_fields[0];
    other.name = "other";
    other.index_kind = IndexKind::kFlat;
    schema.key_fields.push_back(other);
    AttributeSchema price;
    price.name = "price";
    price.type = AttributeType::kDouble;
    schema.attributes.push_back(price);
    OpenCatalog(schema);
    Upsert(Items(kCount, 11));
    catalog_->AwaitIndexes();
    ASSERT_OK(catalog_->merge_status());
    ASSERT_EQ(catalog_->index_states()[0].active_kind, IndexKind::kIvf);
    std::vector<Item> more = Items(100, 12);
    for (Item& item : more) item.id = "late " + item.id;
    Upsert(more);
  }

  static std::vector<Item> Items(int count, std::uint64_t seed) {
    std::vector<Item> items = RandomItems(count, kDim, seed);
    const std::vector<Item> others = RandomItems(count, kDim, seed + 100);
    for (int i = 0; i < count; ++i) {
      items[i].keys.push_back(others[i].keys[0]);
      items[i].attributes.push_back({0, 0.001 * i});
    }
    return items;
  }

  // Returns any query that can be asked of the catalog, and some invalid ones.
  static AttendQuery RandomQuery(std::mt19937_64& random) {
    const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
    AttendQuery query =
        VectorQuery(RandomItems(1, one_in(20) ? 3 : kDim, random())[0].keys[0]);
    if (one_in(6)) {
      const bool keeps_none = one_in(2);
      query = LikeQuery({absl::StrCat("item", random() % kCount), "unheard"});
      std::get<ExamplesQuery>(query.query).exclude_examples = keeps_none;
    }
    query.result_count = 1 + static_cast<std::int64_t>(random() % 20);
    query.temperature = 0.1 * static_cast<double>(1 + random() % 20);
    if (one_in(3)) query.recall = one_in(2) ? 1 : 0.9;
    if (one_in(4)) query.mass_precision = 0.05;
    if (one_in(8)) query.mass_method = MassMethod::kBound;
    // Few enough to be found by codes.
    if (one_in(2)) query.shortlist_count = 20;
    if (one_in(2)) return query;
    if (one_in(3)) query.key_field = "other";
    if (one_in(6)) query.shortlist_count = 2000;
    if (one_in(6)) query.score_kind = ScoreKind::kCosine;
    if (one_in(4)) query.weight_scope = WeightScope::kCatalog;
    if (one_in(4)) query.pool_scope = WeightScope::kCatalog;
    if (one_in(4)) query.deny_list = {"item1", "item2", "item3"};
    if (one_in(8)) query.allow_list = {"item1", "item20", "item300"};
    if (one_in(8)) query.scan_mode = ScanMode::kExact;
    if (one_in(8)) {
      query.biases.push_back({"price", 0.5, std::nullopt});
      query.time = absl::FromUnixSeconds(1);
    }
    if (one_in(8)) {
      query.select_kind = SelectKind::kSample;
      query.seed = static_cast<std::int64_t>(random() % 1000);
    } else if (one_in(8)) {
      query.min_mass = 0.5;
      query.result_count = std::nullopt;
    }
    if (one_in(8)) {
      query.key_field.clear();
      query.heads.resize(2);
      query.heads[0].key_field = "vec";
      query.heads[1].key_field = one_in(2) ? "other" : "vec";
      query.heads[1].temperature = 0.3;
    }
    return query;
  }
};

TEST_F(AttendTogetherTest, AnswersAreTheBytesOfThoseAlone) {
  Open();
  std::mt19937_64 random(1);
  int shared = 0;
  int failed = 0;
  for (const bool deletes : {false, true}) {
    if (deletes) Delete({"item7", "item8"});
    const auto snapshot = catalog_->snapshot();
    for (const std::size_t size : {2U, 7U, 64U, 100U}) {
      std::vector<AttendQuery> queries;
      for (std::size_t i = 0; i < size; ++i) {
        queries.push_back(RandomQuery(random));
      }
      const Interrupt never;
      std::vector<AttendTask> tasks;
      for (const AttendQuery& query : queries)
        tasks.push_back({&query, &never});
      const auto answers = AttendTogether(*snapshot, tasks);
      ASSERT_EQ(answers.size(), size);
      for (std::size_t i = 0; i < size; ++i) {
        const absl::StatusOr<AttendAnswer> alone =
            Attend(*snapshot, queries[i], never);
        EXPECT_EQ(TranscriptOf(answers[i]), TranscriptOf(alone)) << i;
        if (!alone.ok()) {
          ++failed;
          continue;
        }
        EXPECT_EQ(alone->shared_query_count, 1);
        shared += answers[i]->shared_query_count > 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(shared, 100);
  EXPECT_GT(failed, 0);
}

TEST_F(AttendTogetherTest, QueriesOfASegmentWithADeletedRowSharePasses) {
  Open();
  // The growing segment has no lists, so everything depends on the sealed one.
  Delete({"item7"});
  const auto snapshot = catalog_->snapshot();
  ASSERT_NE(snapshot->segments[0].dead, nullptr);
  ASSERT_EQ(snapshot->segments[0].segment->IndexOf(0, -1).kind(),
            IndexKind::kIvf);
  const std::vector<Item> askers = RandomItems(6, kDim, 5);
  std::vector<AttendQuery> queries;
  for (const Item& asker : askers) {
    queries.push_back(VectorQuery(asker.keys[0]));
    queries.back().shortlist_count = 20;
    queries.back().recall = 0.9;
  }
  // Its own deny list excludes only a few.
  queries.back().deny_list = {"item1", "item2"};
  const Interrupt never;
  std::vector<AttendTask> tasks;
  for (const AttendQuery& query : queries) tasks.push_back({&query, &never});
  const auto answers = AttendTogether(*snapshot, tasks);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    ASSERT_OK(answers[i]);
    EXPECT_GT(answers[i]->shared_query_count, 1) << i;
    EXPECT_EQ(TranscriptOf(answers[i]), TranscriptOf(Ask(queries[i]))) << i;
  }
  // This one excludes most items.
  AttendQuery narrow = queries[0];
  narrow.deny_list.clear();
  for (int i = 0; i < 2 * kCount / 3; ++i) {
    narrow.deny_list.push_back(absl::StrCat("item", i));
  }
  const std::vector<AttendTask> narrow_tasks(2, {&narrow, &never});
  for (const auto& answer : AttendTogether(*snapshot, narrow_tasks)) {
    ASSERT_OK(answer);
    EXPECT_EQ(answer->shared_query_count, 1);
  }
}

TEST_F(AttendTogetherTest, OneFailureOrInterruptIsItsOwn) {
  Open();
  const auto snapshot = catalog_->snapshot();
  const AttendQuery good = VectorQuery(RandomItems(1, kDim, 5)[0].keys[0]);
  AttendQuery misshapen = good;
  misshapen.query = std::vector<float>{1, 2};
  // Fails only when its logits are computed.
  AttendQuery overflowing = good;
  overflowing.query = std::vector<float>(kDim, 3e38F);
  const std::atomic<bool> cancelled = true;
  const Interrupt never;
  Interrupt gone;
  gone.cancelled = &cancelled;
  Interrupt late;
  late.deadline = SteadyAfter(-absl::Seconds(1));
  const std::vector<AttendTask> tasks = {
      {&good, &never}, {&misshapen, &never},   {&good, &gone},
      {&good, &late},  {&overflowing, &never}, {&good, &never}};
  const auto answers = AttendTogether(*snapshot, tasks);
  ASSERT_OK_AND_ASSIGN(const AttendAnswer alone, Ask(good));
  EXPECT_EQ(TranscriptOf(answers[0]), TranscriptOf(alone));
  EXPECT_EQ(TranscriptOf(answers[5]), TranscriptOf(alone));
  EXPECT_THAT(answers[1], StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("query.vector")));
  EXPECT_THAT(answers[2],
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_THAT(answers[3],
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  EXPECT_THAT(answers[4], StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("overflow")));
  EXPECT_TRUE(AttendTogether(*snapshot, {}).empty());
}

// The same as for a batch: once the caller is gone nothing more is answered,
// even though the shared pass is over.
TEST_F(AttendTogetherTest, AnInterruptEndsTheAnswersOfAPass) {
  Open();
  std::atomic<bool> cancelled = false;
  Interrupt interrupt;
  interrupt.cancelled = &cancelled;
  const std::vector<Item> items = RandomItems(16, kDim, 6);
  std::vector<AttendQuery> queries;
  for (const Item& item : items) queries.push_back(VectorQuery(item.keys[0]));
  std::vector<AttendTask> tasks;
  for (AttendQuery& query : queries) {
    query.scan_mode = ScanMode::kExact;
    tasks.push_back({&query, &interrupt});
  }
  int answered = 0;
  int ended = 0;
  AttendTogether(*catalog_->snapshot(), tasks,
                 [&](std::size_t, const absl::StatusOr<AttendAnswer>& answer) {
                   cancelled = true;
                   ++(answer.ok() ? answered : ended);
                 });
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(ended, 15);
}

TEST_F(AttendTogetherTest, QueriesThatShareNoPassComeLast) {
  Open();
  const auto snapshot = catalog_->snapshot();
  const AttendQuery quick = VectorQuery(RandomItems(1, kDim, 5)[0].keys[0]);
  // More than the visited lists hold.
  AttendQuery wide = quick;
  wide.result_count = kCount;
  wide.probe_count = 1;
  AttendQuery sample = quick;
  sample.select_kind = SelectKind::kSample;
  sample.seed = 1;
  const Interrupt never;
  const std::vector<AttendTask> tasks = {
      {&sample, &never}, {&wide, &never}, {&quick, &never}};
  std::vector<std::size_t> order;
  AttendTogether(*snapshot, tasks,
                 [&](std::size_t task, absl::StatusOr<AttendAnswer> answer) {
                   ASSERT_OK(answer);
                   order.push_back(task);
                 });
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order[0], 2U);
}

}  // namespace
}  // namespace attendant
