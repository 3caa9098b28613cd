#include "core/catalog/filter/evaluate_filter.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/catalog/filter/number_range.h"
#include "core/kernels/compare.h"

namespace attendant {
namespace {

constexpr std::int64_t kBlockWords = 32;
constexpr std::int64_t kBlockRows = 64 * kBlockWords;
// Blocks between two checks of the interrupt, for a filter with one term.
constexpr std::int64_t kInterruptBlocks = 16;
// Bytes of a dictionary's texts between two checks, and the overhead counted
// for each text.
constexpr std::size_t kInterruptBytes = 64 << 10;
constexpr std::size_t kTextBytes = 16;
// The limit of the memory of all text sets together.
constexpr std::int64_t kMaxSetBytes = std::int64_t{256} << 20;
// Up to this many values, an IN compares value by value without branches.
constexpr std::size_t kFewValues = 8;

// Consecutive rows that start at a multiple of 64.
struct Block {
  std::int64_t first_row = 0;
  std::int64_t row_count = 0;  // 1 to kBlockRows

  std::int64_t first_word() const { return first_row / 64; }
  std::int64_t word_count() const { return (row_count + 63) / 64; }
};

class Predicate {
 public:
  virtual ~Predicate() = default;
  // Sets bit i of the words if row first_row + i passes. Bits past row_count in
  // the last word are unspecified.
  virtual void Evaluate(const Block& block, std::uint64_t* words) const = 0;
};

using PredicatePtr = std::unique_ptr<Predicate>;

class Nothing : public Predicate {
 public:
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    std::fill_n(words, block.word_count(), 0);
  }
};

class Present : public Predicate {
 public:
  explicit Present(const AttributeColumn& column) : column_(column) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    for (std::int64_t w = 0; w < block.word_count(); ++w) {
      words[w] = column_.present.Word(block.first_word() + w);
    }
  }

 protected:
  // Clears the bits of rows without a value.
  void KeepPresent(const Block& block, std::uint64_t* words) const {
    for (std::int64_t w = 0; w < block.word_count(); ++w) {
      words[w] &= column_.present.Word(block.first_word() + w);
    }
  }
  const AttributeColumn& column_;
};

class Truths : public Present {
 public:
  Truths(const AttributeColumn& column, bool wanted)
      : Present(column), flip_(wanted ? 0 : ~std::uint64_t{0}) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    for (std::int64_t w = 0; w < block.word_count(); ++w) {
      words[w] = column_.truths.Word(block.first_word() + w) ^ flip_;
    }
    KeepPresent(block, words);
  }

 private:
  const std::uint64_t flip_;
};

class IntegerRange : public Present {
 public:
  IntegerRange(const AttributeColumn& column, NumberRange<std::int64_t> range)
      : Present(column), range_(range) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    ActiveCompareKernels().Integers(column_.integers.data() + block.first_row,
                                    block.row_count, range_.low, range_.high,
                                    words);
    KeepPresent(block, words);
  }

 private:
  const NumberRange<std::int64_t> range_;
};

class DoubleRange : public Present {
 public:
  DoubleRange(const AttributeColumn& column, NumberRange<double> range)
      : Present(column), range_(range) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    ActiveCompareKernels().Doubles(column_.doubles.data() + block.first_row,
                                   block.row_count, range_.low, range_.high,
                                   words);
    KeepPresent(block, words);
  }

 private:
  const NumberRange<double> range_;
};

// Rows whose number is in a set.
template <typename T>
class NumberIn : public Present {
 public:
  NumberIn(const AttributeColumn& column, const AlignedBuffer<T>& numbers,
           absl::flat_hash_set<T> wanted)
      : Present(column), numbers_(numbers), wanted_(std::move(wanted)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    for (std::int64_t w = 0; w < block.word_count(); ++w) {
      words[w] = 0;
      const std::int64_t first_row = block.first_row + 64 * w;
      std::uint64_t left = column_.present.Word(block.first_word() + w);
      for (; left != 0; left &= left - 1) {
        const int bit = std::countr_zero(left);
        // A row that is being appended.
        if (64 * w + bit >= block.row_count) break;
        const T number = numbers_[first_row + bit];
        words[w] |= std::uint64_t{wanted_.contains(number)} << bit;
      }
    }
  }

 private:
  const AlignedBuffer<T>& numbers_;
  const absl::flat_hash_set<T> wanted_;
};

// A set of a dictionary's codes. Texts added to the dictionary later are not in
// it.
class CodeSet {
 public:
  explicit CodeSet(std::int32_t code_count)
      : code_count_(code_count),
        chosen_(static_cast<std::size_t>((code_count + 31) / 32)) {}

  void Add(std::int32_t code) {
    std::uint32_t& word = chosen_[static_cast<std::size_t>(code) / 32];
    const std::uint32_t bit = std::uint32_t{1} << (code % 32);
    if ((word & bit) == 0) ++size_;
    word |= bit;
    last_ = code;
  }
  bool Contains(std::int32_t code) const {
    return code < code_count_ &&
           ((chosen_[static_cast<std::size_t>(code) / 32] >> (code % 32)) & 1);
  }

  std::int32_t size() const { return size_; }
  std::int32_t code_count() const { return code_count_; }
  std::int32_t last() const { return last_; }  // the code added last
  const std::uint32_t* words() const { return chosen_.data(); }

 private:
  std::int32_t code_count_;
  std::vector<std::uint32_t> chosen_;
  std::int32_t size_ = 0;
  std::int32_t last_ = 0;
};

// Rows whose text is a given one.
class TextIs : public Present {
 public:
  TextIs(const AttributeColumn& column, std::int32_t code)
      : Present(column), code_(code) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    ActiveCompareKernels().Code(column_.codes.data() + block.first_row,
                                block.row_count, code_, words);
    KeepPresent(block, words);
  }

 private:
  const std::int32_t code_;
};

// Rows whose text is in a set.
class TextIn : public Present {
 public:
  TextIn(const AttributeColumn& column, CodeSet chosen)
      : Present(column), chosen_(std::move(chosen)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    ActiveCompareKernels().Codes(column_.codes.data() + block.first_row,
                                 block.row_count, chosen_.words(),
                                 chosen_.code_count(), words);
    KeepPresent(block, words);
  }

 private:
  const CodeSet chosen_;
};

// Rows whose list contains a text.
class ListContains : public Present {
 public:
  ListContains(const AttributeColumn& column, std::int32_t code)
      : Present(column), code_(code) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    std::fill_n(words, block.word_count(), 0);
    const auto [begin, end] = EntriesOf(block);
    for (std::int64_t i = begin; i < end;) {
      const std::span<const ListEntry> run =
          column_.entries.Run(i, std::min(end, i + kRunEntries));
      MarkRows(run, block.first_row, words);
      i += static_cast<std::int64_t>(run.size());
    }
  }

 private:
  // Returns the range of entries that contains all lists of a block.
  std::pair<std::int64_t, std::int64_t> EntriesOf(const Block& block) const {
    std::int64_t first = block.first_row;
    std::int64_t last = block.first_row + block.row_count - 1;
    while (first <= last && !column_.present.Test(first)) ++first;
    while (first <= last && !column_.present.Test(last)) --last;
    if (first > last) return {0, 0};
    const auto at = static_cast<std::size_t>(last);
    return {column_.begins[first], column_.begins[at] + column_.counts[at]};
  }

  // The number of entries to compare at once.
  static constexpr std::int64_t kRunEntries = 1024;

  // An entry is a code and a row. Compares both, and uses the results of codes,
  // which are every other bit.
  void MarkRows(std::span<const ListEntry> run, std::int64_t first_row,
                std::uint64_t* words) const {
    static_assert(sizeof(ListEntry) == 2 * sizeof(std::int32_t) &&
                  offsetof(ListEntry, code) == 0);
    constexpr std::uint64_t kCodes = 0x5555555555555555;
    std::uint64_t equal[2 * kRunEntries / 64];
    const auto count = static_cast<std::int64_t>(2 * run.size());
    ActiveCompareKernels().Code(&run.data()->code, count, code_, equal);
    for (std::int64_t w = 0; w < (count + 63) / 64; ++w) {
      for (std::uint64_t left = equal[w] & kCodes; left != 0;
           left &= left - 1) {
        const std::int64_t entry = 32 * w + std::countr_zero(left) / 2;
        const std::int64_t at = run[entry].row - first_row;
        words[at / 64] |= std::uint64_t{1} << (at % 64);
      }
    }
  }

  const std::int32_t code_;
};

// Rows whose list is in a set of lists.
class ListIn : public Present {
 public:
  ListIn(const AttributeColumn& column,
         absl::flat_hash_set<std::vector<std::int32_t>> lists)
      : Present(column), lists_(std::move(lists)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    std::fill_n(words, block.word_count(), 0);
    for (std::int64_t i = 0; i < block.row_count; ++i) {
      const std::int64_t row = block.first_row + i;
      if (column_.present.Test(row) &&
          IsWanted(static_cast<std::size_t>(row))) {
        words[i / 64] |= std::uint64_t{1} << (i % 64);
      }
    }
  }

 private:
  bool IsWanted(std::size_t row) const {
    if (lists_.size() <= kFewValues) {
      return std::ranges::any_of(
          lists_, [&](const auto& list) { return IsList(row, list); });
    }
    thread_local std::vector<std::int32_t> list;
    list.clear();
    const std::int64_t begin = column_.begins[row];
    for (std::int64_t i = begin; i < begin + column_.counts[row]; ++i) {
      list.push_back(column_.entries[i].code);
    }
    return lists_.contains(list);
  }

  bool IsList(std::size_t row, const std::vector<std::int32_t>& list) const {
    if (list.size() != static_cast<std::size_t>(column_.counts[row])) {
      return false;
    }
    std::int64_t entry = column_.begins[row];
    return std::ranges::all_of(list, [&](std::int32_t code) {
      return column_.entries[entry++].code == code;
    });
  }

  const absl::flat_hash_set<std::vector<std::int32_t>> lists_;
};

class Not : public Predicate {
 public:
  explicit Not(PredicatePtr negated) : negated_(std::move(negated)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    negated_->Evaluate(block, words);
    for (std::int64_t w = 0; w < block.word_count(); ++w) words[w] = ~words[w];
  }

 private:
  const PredicatePtr negated_;
};

class All : public Predicate {
 public:
  explicit All(std::vector<PredicatePtr> parts) : parts_(std::move(parts)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    std::fill_n(words, block.word_count(), ~std::uint64_t{0});
    std::uint64_t part_words[kBlockWords];
    for (const PredicatePtr& part : parts_) {
      part->Evaluate(block, part_words);
      std::uint64_t any = 0;
      for (std::int64_t w = 0; w < block.word_count(); ++w) {
        any |= words[w] &= part_words[w];
      }
      if (any == 0) return;
    }
  }

 private:
  const std::vector<PredicatePtr> parts_;
};

class Any : public Predicate {
 public:
  explicit Any(std::vector<PredicatePtr> parts) : parts_(std::move(parts)) {}
  void Evaluate(const Block& block, std::uint64_t* words) const override {
    std::fill_n(words, block.word_count(), 0);
    std::uint64_t part_words[kBlockWords];
    for (const PredicatePtr& part : parts_) {
      part->Evaluate(block, part_words);
      for (std::int64_t w = 0; w < block.word_count(); ++w) {
        words[w] |= part_words[w];
      }
    }
  }

 private:
  const std::vector<PredicatePtr> parts_;
};

// Compiles a filter into predicates over the columns of a segment.
class Compiler {
 public:
  Compiler(const CatalogSchema& schema, const AttributeColumns& columns,
           const Interrupt& interrupt)
      : schema_(schema), columns_(columns), interrupt_(interrupt) {}

  // Errors: Cancelled, DeadlineExceeded, since a filter may require many passes
  // over the distinct texts.
  absl::StatusOr<PredicatePtr> Compile(const Filter& filter) {
    ++term_count_;
    switch (filter.kind) {
      case FilterKind::kAllOf: {
        ATTENDANT_ASSIGN_OR_RETURN(auto parts, CompileParts(filter));
        return std::make_unique<All>(std::move(parts));
      }
      case FilterKind::kAnyOf: {
        ATTENDANT_ASSIGN_OR_RETURN(auto parts, CompileParts(filter));
        return std::make_unique<Any>(std::move(parts));
      }
      case FilterKind::kNegation: {
        ATTENDANT_ASSIGN_OR_RETURN(auto negated, Compile(filter.filters[0]));
        return std::make_unique<Not>(std::move(negated));
      }
      case FilterKind::kExists:
      case FilterKind::kComparison:
      case FilterKind::kMembership:
      case FilterKind::kContainment:
        break;
    }
    const AttributeColumn* column =
        columns_.column(schema_.AttributeIndex(filter.attribute));
    if (column == nullptr) return std::make_unique<Nothing>();
    if (filter.kind == FilterKind::kExists) {
      return std::make_unique<Present>(*column);
    }
    if (filter.kind == FilterKind::kContainment) {
      return Containment(*column, std::get<std::string>(filter.values[0]));
    }
    if (filter.kind == FilterKind::kMembership) {
      return EqualToOne(*column, filter.values);
    }
    if (filter.comparison == ComparisonKind::kNotEqual) {
      ATTENDANT_ASSIGN_OR_RETURN(PredicatePtr equal,
                                 EqualToOne(*column, filter.values));
      std::vector<PredicatePtr> parts;
      parts.push_back(std::make_unique<Present>(*column));
      parts.push_back(std::make_unique<Not>(std::move(equal)));
      return std::make_unique<All>(std::move(parts));
    }
    return Comparison(*column, filter.comparison, filter.values[0]);
  }

  std::int64_t term_count() const { return term_count_; }

 private:
  absl::StatusOr<std::vector<PredicatePtr>> CompileParts(const Filter& filter) {
    std::vector<PredicatePtr> parts;
    for (const Filter& part : filter.filters) {
      // Each part may mark codes in a set as large as the dictionary.
      ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
      ATTENDANT_ASSIGN_OR_RETURN(parts.emplace_back(), Compile(part));
    }
    return parts;
  }

  absl::StatusOr<PredicatePtr> Comparison(const AttributeColumn& column,
                                          ComparisonKind kind,
                                          const AttributeValue& value) {
    if (kind == ComparisonKind::kEqual) return EqualToOne(column, {&value, 1});
    if (column.type == AttributeType::kString) {
      const auto& text = std::get<std::string>(value);
      return TextsThat(column, [&](absl::string_view other) {
        const int order = other.compare(text);
        switch (kind) {
          case ComparisonKind::kLess:
            return order < 0;
          case ComparisonKind::kLessOrEqual:
            return order <= 0;
          case ComparisonKind::kGreater:
            return order > 0;
          default:
            return order >= 0;
        }
      });
    }
    return NumbersThat(column, kind, value);
  }

  static PredicatePtr NumbersThat(const AttributeColumn& column,
                                  ComparisonKind kind,
                                  const AttributeValue& value) {
    if (column.type == AttributeType::kDouble) {
      const auto range = DoublesThat(kind, value);
      if (!range) return std::make_unique<Nothing>();
      return std::make_unique<DoubleRange>(column, *range);
    }
    const auto range = IntegersThat(kind, value);
    if (!range) return std::make_unique<Nothing>();
    return std::make_unique<IntegerRange>(column, *range);
  }

  absl::StatusOr<PredicatePtr> EqualToOne(
      const AttributeColumn& column, std::span<const AttributeValue> values) {
    switch (column.type) {
      case AttributeType::kBool:
        return TruthIn(column, values);
      case AttributeType::kString:
        return KnownTexts(column, values);
      case AttributeType::kStringList:
        return KnownLists(column, values);
      case AttributeType::kInt64:
      case AttributeType::kDouble:
      case AttributeType::kTimestamp:
        break;
    }
    if (values.size() > kFewValues) return ManyNumbers(column, values);
    std::vector<PredicatePtr> parts;
    for (const AttributeValue& value : values) {
      parts.push_back(NumbersThat(column, ComparisonKind::kEqual, value));
    }
    if (parts.size() == 1) return std::move(parts[0]);
    return std::make_unique<Any>(std::move(parts));
  }

  static PredicatePtr ManyNumbers(const AttributeColumn& column,
                                  std::span<const AttributeValue> values) {
    absl::flat_hash_set<std::int64_t> integers;
    absl::flat_hash_set<double> doubles;
    for (const AttributeValue& value : values) {
      if (column.type == AttributeType::kDouble) {
        const auto range = DoublesThat(ComparisonKind::kEqual, value);
        if (range) doubles.insert(range->low);
      } else {
        const auto range = IntegersThat(ComparisonKind::kEqual, value);
        if (range) integers.insert(range->low);
      }
    }
    if (column.type == AttributeType::kDouble) {
      return std::make_unique<NumberIn<double>>(column, column.doubles,
                                                std::move(doubles));
    }
    return std::make_unique<NumberIn<std::int64_t>>(column, column.integers,
                                                    std::move(integers));
  }

  static PredicatePtr TruthIn(const AttributeColumn& column,
                              std::span<const AttributeValue> values) {
    std::vector<PredicatePtr> parts;
    for (const AttributeValue& value : values) {
      parts.push_back(std::make_unique<Truths>(column, std::get<bool>(value)));
    }
    return std::make_unique<Any>(std::move(parts));
  }

  // Returns an empty set over the current texts.
  absl::StatusOr<CodeSet> NewSet(const AttributeColumn& column) {
    const std::int32_t code_count = column.texts.size();
    set_bytes_ += code_count / 8;
    if (set_bytes_ > kMaxSetBytes) {
      return OverLimit(
          "filter",
          absl::StrCat("terms over texts that take more than ",
                       kMaxSetBytes >> 20, " MiB"),
          "fewer IN, CONTAINS and comparisons of attributes of so many texts");
    }
    return CodeSet(code_count);
  }

  static PredicatePtr ChosenTexts(const AttributeColumn& column,
                                  CodeSet chosen) {
    if (chosen.size() == 0) return std::make_unique<Nothing>();
    if (chosen.size() == 1) {
      return std::make_unique<TextIs>(column, chosen.last());
    }
    return std::make_unique<TextIn>(column, std::move(chosen));
  }

  absl::StatusOr<PredicatePtr> KnownTexts(
      const AttributeColumn& column, std::span<const AttributeValue> values) {
    absl::flat_hash_set<std::int32_t> codes;
    for (const AttributeValue& value : values) {
      const std::int32_t code = column.texts.Find(std::get<std::string>(value));
      if (code >= 0) codes.insert(code);
    }
    if (codes.empty()) return std::make_unique<Nothing>();
    if (codes.size() == 1) {
      return std::make_unique<TextIs>(column, *codes.begin());
    }
    // Created last, because texts may be added concurrently.
    ATTENDANT_ASSIGN_OR_RETURN(CodeSet chosen, NewSet(column));
    for (const std::int32_t code : codes) chosen.Add(code);
    return ChosenTexts(column, std::move(chosen));
  }

  template <typename Passes>
  absl::StatusOr<PredicatePtr> TextsThat(const AttributeColumn& column,
                                         Passes passes) {
    ATTENDANT_ASSIGN_OR_RETURN(CodeSet chosen, NewSet(column));
    std::size_t bytes_since_check = kInterruptBytes;
    for (std::int32_t code = 0; code < chosen.code_count(); ++code) {
      if (bytes_since_check >= kInterruptBytes) {
        bytes_since_check = 0;
        ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
      }
      const absl::string_view text = column.texts.Text(code);
      bytes_since_check += text.size() + kTextBytes;
      if (passes(text)) chosen.Add(code);
    }
    return ChosenTexts(column, std::move(chosen));
  }

  absl::StatusOr<PredicatePtr> Containment(const AttributeColumn& column,
                                           const std::string& text) {
    if (column.type == AttributeType::kString) {
      return TextsThat(column, [&](absl::string_view whole) {
        // memmem takes time linear in the sum of the lengths; find() takes
        // their product.
        if (text.empty() || whole.size() < text.size()) return text.empty();
        return memmem(whole.data(), whole.size(), text.data(), text.size()) !=
               nullptr;
      });
    }
    const std::int32_t code = column.texts.Find(text);
    if (code < 0) return std::make_unique<Nothing>();
    return std::make_unique<ListContains>(column, code);
  }

  static PredicatePtr KnownLists(const AttributeColumn& column,
                                 std::span<const AttributeValue> values) {
    absl::flat_hash_set<std::vector<std::int32_t>> lists;
    for (const AttributeValue& value : values) {
      std::vector<std::int32_t> codes;
      for (const std::string& text :
           std::get<std::vector<std::string>>(value)) {
        codes.push_back(column.texts.Find(text));
      }
      // A text that is not in the dictionary is in no row's list.
      if (std::ranges::find(codes, -1) != codes.end()) continue;
      lists.insert(std::move(codes));
    }
    return std::make_unique<ListIn>(column, std::move(lists));
  }

  const CatalogSchema& schema_;
  const AttributeColumns& columns_;
  const Interrupt& interrupt_;
  std::int64_t term_count_ = 0;
  std::int64_t set_bytes_ = 0;
};

// Sets the words to the rows of a block in the scope. Returns false if there
// are none.
bool LeavesAny(const FilterScope& scope, const Block& block,
               std::uint64_t* words) {
  std::uint64_t any = 0;
  for (std::int64_t w = 0; w < block.word_count(); ++w) {
    const auto at = static_cast<std::size_t>(block.first_word() + w);
    std::uint64_t word = ~std::uint64_t{0};
    if (scope.only != nullptr) word &= scope.only->words()[at];
    if (scope.excluded != nullptr) word &= ~scope.excluded->words()[at];
    words[w] = word;
  }
  if (block.row_count % 64 != 0) {
    words[block.word_count() - 1] &=
        (std::uint64_t{1} << (block.row_count % 64)) - 1;
  }
  for (std::int64_t w = 0; w < block.word_count(); ++w) any |= words[w];
  return any != 0;
}

bool IsEmpty(const Bitmap& rows) {
  return std::ranges::all_of(rows.words(),
                             [](std::uint64_t word) { return word == 0; });
}

}  // namespace

absl::StatusOr<Bitmap> EvaluateFilter(const Filter& filter,
                                      const CatalogSchema& schema,
                                      const RowTable& rows, RowIndex row_end,
                                      const FilterScope& scope,
                                      const Interrupt& interrupt) {
  Bitmap passing(rows.capacity());
  // Looking up texts takes as long for one row as for all.
  if (scope.only != nullptr && IsEmpty(*scope.only)) return passing;
  Compiler compiler(schema, rows.columns(), interrupt);
  ATTENDANT_ASSIGN_OR_RETURN(const PredicatePtr predicate,
                             compiler.Compile(filter));
  const std::int64_t rows_between_checks =
      kBlockRows *
      std::max<std::int64_t>(1, kInterruptBlocks / compiler.term_count());
  std::uint64_t scope_words[kBlockWords];
  std::uint64_t words[kBlockWords];
  for (std::int64_t first = 0; first < row_end; first += kBlockRows) {
    if (first % rows_between_checks == 0) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    }
    const Block block = {first,
                         std::min<std::int64_t>(kBlockRows, row_end - first)};
    if (!LeavesAny(scope, block, scope_words)) continue;
    predicate->Evaluate(block, words);
    for (std::int64_t w = 0; w < block.word_count(); ++w) {
      passing.words()[block.first_word() + w] = words[w] & scope_words[w];
    }
  }
  return passing;
}

}  // namespace attendant
