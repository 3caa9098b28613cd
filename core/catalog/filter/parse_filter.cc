#include "core/catalog/filter/parse_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr absl::string_view kField = "filter";

struct Token {
  enum class Kind { kEnd, kWord, kNumber, kText, kSymbol };

  Kind kind = Kind::kEnd;
  absl::string_view source;  // as written
  std::size_t position = 1;
  std::string text;  // kText: without quotes and escapes

  bool Is(Kind other, absl::string_view written) const {
    return kind == other && source == written;
  }
  bool IsWord(absl::string_view word) const { return Is(Kind::kWord, word); }
  bool IsSymbol(absl::string_view symbol) const {
    return Is(Kind::kSymbol, symbol);
  }
};

std::string At(std::size_t position) {
  return absl::StrCat(" at position ", position);
}

absl::Status Unexpected(const Token& got, absl::string_view want) {
  // The beginning of a long token is enough to find it.
  constexpr std::size_t kShown = 40;
  std::string shown = "the end";
  if (got.kind != Token::Kind::kEnd) {
    shown = std::string(got.source.substr(0, kShown));
    if (got.source.size() > kShown) absl::StrAppend(&shown, "...");
  }
  // Words in lower case are names of attributes.
  const std::string upper = absl::AsciiStrToUpper(shown);
  const bool is_keyword =
      upper != shown && got.kind == Token::Kind::kWord &&
      (upper == "AND" || upper == "OR" || upper == "NOT" || upper == "IN" ||
       upper == "EXISTS" || upper == "CONTAINS");
  return InvalidField(
      kField, absl::StrCat(shown, At(got.position)),
      is_keyword
          ? absl::StrCat(want, "; keywords are in upper case, as ", upper)
          : std::string(want));
}

// Splits a text into tokens.
class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  absl::StatusOr<Token> Next() {
    while (at_ < text_.size() && absl::ascii_isspace(Char(at_))) ++at_;
    Token token;
    token.position = at_ + 1;
    if (at_ == text_.size()) return token;
    const unsigned char c = Char(at_);
    if (c == '"' || c == '\'') return Text(std::move(token));
    std::size_t end = at_ + 1;
    if (absl::ascii_isalpha(c)) {
      token.kind = Token::Kind::kWord;
      while (end < text_.size() && IsWordChar(Char(end))) ++end;
    } else if (absl::ascii_isdigit(c)) {
      token.kind = Token::Kind::kNumber;
      while (end < text_.size() && IsNumberChar(end)) ++end;
    } else {
      token.kind = Token::Kind::kSymbol;
      const bool may_double = c == '=' || c == '!' || c == '<' || c == '>';
      if (may_double && end < text_.size() && Char(end) == '=') ++end;
    }
    token.source = text_.substr(at_, end - at_);
    at_ = end;
    return token;
  }

 private:
  unsigned char Char(std::size_t i) const {
    return static_cast<unsigned char>(text_[i]);
  }
  static bool IsWordChar(unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_';
  }
  // True for every character that can be part of a number or make it invalid,
  // as in "2x": the whole token is then refused.
  bool IsNumberChar(std::size_t i) const {
    const unsigned char c = Char(i);
    if (IsWordChar(c) || c == '.') return true;
    const unsigned char before = Char(i - 1);
    return (c == '-' || c == '+') && (before == 'e' || before == 'E');
  }

  absl::StatusOr<Token> Text(Token token) {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    token.kind = Token::Kind::kText;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == quote) {
        token.source = text_.substr(begin, ++at_ - begin);
        return token;
      }
      if (c == '\\') {
        constexpr absl::string_view kEscapes = "\"'\\nrt";
        constexpr absl::string_view kMeanings = "\"'\\\n\r\t";
        const std::size_t escape = at_ + 1 < text_.size()
                                       ? kEscapes.find(text_[at_ + 1])
                                       : absl::string_view::npos;
        if (escape == absl::string_view::npos) {
          return InvalidField(kField,
                              absl::StrCat("an unknown escape", At(at_ + 1)),
                              "a backslash before \", ', \\, n, r or t");
        }
        ++at_;
        c = kMeanings[escape];
      }
      token.text.push_back(c);
    }
    return InvalidField(kField,
                        absl::StrCat("a text without end", At(begin + 1)),
                        "a closing quote");
  }

  const absl::string_view text_;
  std::size_t at_ = 0;
};

// A filter and its depth.
struct Parsed {
  Filter filter;
  int depth = 1;
};

// A recursive descent parser with one token of lookahead. After each method,
// token_ is the first token that it did not parse.
class Parser {
 public:
  Parser(absl::string_view text, const CatalogSchema& schema)
      : lexer_(text), schema_(schema) {}

  absl::StatusOr<Filter> Parse() {
    ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_ASSIGN_OR_RETURN(Parsed parsed, ParseAll());
    if (token_.kind != Token::Kind::kEnd) {
      return Unexpected(token_, "AND, OR or the end");
    }
    return std::move(parsed.filter);
  }

 private:
  absl::Status Advance() {
    ATTENDANT_ASSIGN_OR_RETURN(token_, lexer_.Next());
    return absl::OkStatus();
  }

  // Returns the only one of `parts`, or all of them as a filter of `kind`.
  absl::StatusOr<Parsed> Join(FilterKind kind, std::vector<Parsed> parts) {
    if (parts.size() == 1) return std::move(parts[0]);
    Parsed joined;
    joined.filter.kind = kind;
    for (Parsed& part : parts) {
      joined.depth = std::max(joined.depth, part.depth + 1);
      joined.filter.filters.push_back(std::move(part.filter));
    }
    ATTENDANT_RETURN_IF_ERROR(CheckDepth(joined.depth));
    return joined;
  }

  absl::Status CheckDepth(int depth) const {
    if (depth <= kMaxFilterDepth) return absl::OkStatus();
    return OverLimit(kField, absl::StrCat(depth, " deep", At(token_.position)),
                     absl::StrCat("at most ", kMaxFilterDepth));
  }

  absl::StatusOr<Parsed> ParseAll() {
    std::vector<Parsed> parts;
    while (true) {
      ATTENDANT_ASSIGN_OR_RETURN(Parsed part, ParseAny());
      parts.push_back(std::move(part));
      if (!token_.IsWord("AND")) break;
      ATTENDANT_RETURN_IF_ERROR(Advance());
    }
    return Join(FilterKind::kAllOf, std::move(parts));
  }

  absl::StatusOr<Parsed> ParseAny() {
    std::vector<Parsed> parts;
    while (true) {
      ATTENDANT_ASSIGN_OR_RETURN(Parsed part, ParseTerm());
      parts.push_back(std::move(part));
      if (!token_.IsWord("OR")) break;
      ATTENDANT_RETURN_IF_ERROR(Advance());
    }
    return Join(FilterKind::kAnyOf, std::move(parts));
  }

  absl::StatusOr<Parsed> ParseTerm() {
    if (!token_.IsWord("NOT") && !token_.IsSymbol("-")) return ParseSimple();
    ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_ASSIGN_OR_RETURN(Parsed parsed, ParseSimple());
    parsed.filter = Filter::Not(std::move(parsed.filter));
    ATTENDANT_RETURN_IF_ERROR(CheckDepth(++parsed.depth));
    return parsed;
  }

  absl::StatusOr<Parsed> ParseSimple() {
    if (!token_.IsSymbol("(")) return ParseCondition();
    ATTENDANT_RETURN_IF_ERROR(CheckDepth(++open_count_));
    ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_ASSIGN_OR_RETURN(Parsed parsed, ParseAll());
    ATTENDANT_RETURN_IF_ERROR(Expect(")", "AND, OR or )"));
    --open_count_;
    return parsed;
  }

  absl::Status Expect(absl::string_view symbol, absl::string_view want) {
    if (!token_.IsSymbol(symbol)) return Unexpected(token_, want);
    return Advance();
  }

  std::string DeclaredAttributes() const {
    constexpr std::size_t kMaxNamed = 20;
    std::string want = "an attribute that the schema declares";
    for (std::size_t i = 0; i < schema_.attributes.size(); ++i) {
      absl::StrAppend(&want, i == 0 ? ": " : ", ",
                      i == kMaxNamed ? "..." : schema_.attributes[i].name);
      if (i == kMaxNamed) break;
    }
    return want;
  }

  absl::StatusOr<const AttributeSchema*> ParseName() {
    if (token_.kind != Token::Kind::kWord) {
      return Unexpected(token_, "an attribute, NOT, EXISTS or (");
    }
    const int attribute = schema_.AttributeIndex(token_.source);
    if (attribute < 0) {
      return Unexpected(token_, DeclaredAttributes());
    }
    ATTENDANT_RETURN_IF_ERROR(Advance());
    return &schema_.attributes[attribute];
  }

  absl::StatusOr<Parsed> ParseCondition() {
    const bool exists = token_.IsWord("EXISTS");
    if (exists) ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_ASSIGN_OR_RETURN(const AttributeSchema* attribute, ParseName());
    if (exists) return Parsed{Filter::Exists(attribute->name)};
    if (token_.IsWord("IN")) return ParseMembership(*attribute);
    if (token_.IsWord("CONTAINS") || token_.IsSymbol(":")) {
      return ParseContainment(*attribute);
    }
    const std::optional<ComparisonKind> kind = ComparisonOf(token_);
    if (!kind) {
      return Unexpected(token_,
                        "=, !=, <, <=, >, >=, :, IN or CONTAINS after an "
                        "attribute");
    }
    ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_ASSIGN_OR_RETURN(AttributeValue value,
                               ParseValue(*attribute, *kind));
    return Parsed{Filter::Compare(attribute->name, *kind, std::move(value))};
  }

  static std::optional<ComparisonKind> ComparisonOf(const Token& token) {
    if (token.IsSymbol("=") || token.IsSymbol("==")) {
      return ComparisonKind::kEqual;
    }
    if (token.IsSymbol("!=")) return ComparisonKind::kNotEqual;
    if (token.IsSymbol("<")) return ComparisonKind::kLess;
    if (token.IsSymbol("<=")) return ComparisonKind::kLessOrEqual;
    if (token.IsSymbol(">")) return ComparisonKind::kGreater;
    if (token.IsSymbol(">=")) return ComparisonKind::kGreaterOrEqual;
    return std::nullopt;
  }

  absl::StatusOr<Parsed> ParseMembership(const AttributeSchema& attribute) {
    ATTENDANT_RETURN_IF_ERROR(Advance());
    ATTENDANT_RETURN_IF_ERROR(Expect("(", "( after IN"));
    std::vector<AttributeValue> values;
    while (true) {
      if (values.size() == static_cast<std::size_t>(kMaxFilterValues)) {
        return OverLimit(
            kField,
            absl::StrCat(values.size() + 1, " values", At(token_.position)),
            absl::StrCat("at most ", kMaxFilterValues, " in an IN"));
      }
      ATTENDANT_ASSIGN_OR_RETURN(AttributeValue value,
                                 ParseValue(attribute, ComparisonKind::kEqual));
      values.push_back(std::move(value));
      if (!token_.IsSymbol(",")) break;
      ATTENDANT_RETURN_IF_ERROR(Advance());
    }
    ATTENDANT_RETURN_IF_ERROR(Expect(")", ", or )"));
    return Parsed{Filter::In(attribute.name, std::move(values))};
  }

  absl::StatusOr<Parsed> ParseContainment(const AttributeSchema& attribute) {
    const Token symbol = token_;
    ATTENDANT_RETURN_IF_ERROR(Advance());
    if (symbol.IsSymbol(":") && token_.IsSymbol("*")) {
      ATTENDANT_RETURN_IF_ERROR(Advance());
      return Parsed{Filter::Exists(attribute.name)};
    }
    if (attribute.type != AttributeType::kString &&
        attribute.type != AttributeType::kStringList) {
      return Unexpected(
          symbol, absl::StrCat("a comparison, as ", attribute.name, " is a ",
                               Name(attribute.type)));
    }
    if (token_.kind != Token::Kind::kText) {
      return Unexpected(token_, "a text between quotes");
    }
    Parsed parsed{Filter::Contains(attribute.name, token_.text)};
    ATTENDANT_RETURN_IF_ERROR(Advance());
    return parsed;
  }

  // Parses a value that can be compared with the attribute by `kind`.
  absl::StatusOr<AttributeValue> ParseValue(const AttributeSchema& attribute,
                                            ComparisonKind kind) {
    const Token first = token_;
    if (attribute.type == AttributeType::kStringList) {
      return Unexpected(first,
                        absl::StrCat("CONTAINS and a text, as ", attribute.name,
                                     " is a string list"));
    }
    ATTENDANT_ASSIGN_OR_RETURN(AttributeValue value, ParseAnyValue());
    if (attribute.type == AttributeType::kTimestamp) {
      if (first.kind == Token::Kind::kText) {
        if (const auto time = ParseMoment(first.text)) {
          return AttributeValue(*time);
        }
      }
      return Unexpected(
          first, absl::StrCat("a moment as \"2026-01-31T12:00:00Z\", as ",
                              attribute.name, " is a timestamp"));
    }
    const absl::Status status =
        ValidateComparison(attribute.type, kind, value, attribute.name, kField);
    if (status.ok()) return value;
    // The same error, with the position.
    return InvalidField(
        kField, absl::StrCat(first.source.substr(0, 40), At(first.position)),
        absl::StrCat("what ", attribute.name, ", ", WithArticle(attribute.type),
                     ", can be compared with"));
  }

  absl::StatusOr<AttributeValue> ParseAnyValue() {
    const bool negative = token_.IsSymbol("-");
    if (negative) {
      ATTENDANT_RETURN_IF_ERROR(Advance());
      if (token_.kind != Token::Kind::kNumber) {
        return Unexpected(token_, "a number after -");
      }
    }
    if (token_.kind == Token::Kind::kNumber) {
      ATTENDANT_ASSIGN_OR_RETURN(
          AttributeValue value,
          ParseNumber(absl::StrCat(negative ? "-" : "", token_.source)));
      ATTENDANT_RETURN_IF_ERROR(Advance());
      return value;
    }
    AttributeValue value;
    if (token_.kind == Token::Kind::kText) {
      value = token_.text;
    } else if (token_.IsWord("true") || token_.IsWord("false")) {
      value = token_.IsWord("true");
    } else {
      return Unexpected(token_,
                        "a number, true, false, or a text between quotes");
    }
    ATTENDANT_RETURN_IF_ERROR(Advance());
    return value;
  }

  absl::StatusOr<AttributeValue> ParseNumber(const std::string& written) const {
    const char* end = written.data() + written.size();
    std::int64_t integer = 0;
    const auto as_integer = std::from_chars(written.data(), end, integer);
    if (as_integer.ptr == end) {
      if (as_integer.ec == std::errc()) return AttributeValue(integer);
      return Unexpected(token_,
                        "an integer of 64 bits, or a double, with a point");
    }
    double number = 0;
    const auto as_double = std::from_chars(written.data(), end, number);
    if (as_double.ptr == end && as_double.ec == std::errc()) {
      return AttributeValue(number);
    }
    return Unexpected(token_, "a number as 12, -0.5 or 6e23");
  }

  // Accepts years 1 to 9999, as in items. A date alone is its first moment in
  // UTC.
  static std::optional<absl::Time> ParseMoment(const std::string& text) {
    // absl::ParseTime accepts more than RFC 3339: white space, infinities, and
    // years that do not have four digits.
    if (text.find('-') != 4 ||
        !absl::ascii_isdigit(static_cast<unsigned char>(text.front())) ||
        absl::ascii_isspace(static_cast<unsigned char>(text.back()))) {
      return std::nullopt;
    }
    absl::Time time;
    std::string error;
    constexpr absl::string_view kDate = "2026-01-31";
    const char* format =
        text.size() == kDate.size() ? "%Y-%m-%d" : absl::RFC3339_full;
    if (!absl::ParseTime(format, text, &time, &error)) return std::nullopt;
    // An offset may lead out of the range of years.
    const absl::civil_year_t year =
        absl::ToCivilYear(time, absl::UTCTimeZone()).year();
    if (year < 1 || year > 9999) return std::nullopt;
    return time;
  }

  Lexer lexer_;
  const CatalogSchema& schema_;
  Token token_;
  int open_count_ = 0;
};

}  // namespace

absl::StatusOr<Filter> ParseFilter(absl::string_view text,
                                   const CatalogSchema& schema) {
  // The parser reports what an empty text lacks.
  const std::size_t size = std::max<std::size_t>(1, text.size());
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(size), 1,
                                       kMaxFilterBytes, kField, " bytes"));
  return Parser(text, schema).Parse();
}

}  // namespace attendant
