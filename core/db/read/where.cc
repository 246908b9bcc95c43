#include "core/db/read/where.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"

namespace pelab::db {
namespace {

constexpr std::size_t kMaxLength = 64000;  // bytes
constexpr int kMaxTerms = 1000;            // conditions, and values of lists
constexpr int kMaxDepth = 50;              // nested brackets and nots
constexpr std::size_t kMaxShown = 80;      // bytes of a condition in a message

struct OperatorText {
  std::string_view text;
  Operator op;
};
// Longer operators first, since "<" is the beginning of "<=".
constexpr OperatorText kOperators[] = {
    {"!=", Operator::kNotEqual},    {"!~", Operator::kMatchesNot},
    {"<=", Operator::kLessOrEqual}, {">=", Operator::kGreaterOrEqual},
    {"==", Operator::kEqual},       {"=", Operator::kEqual},
    {"<", Operator::kLess},         {">", Operator::kGreater},
    {"~", Operator::kMatches}};

// Whether the operator compares with a value that a job can have: not with a pattern, and not !=,
// which nearly every job meets.
bool ComparesWithValue(Operator op) {
  return op != Operator::kNotEqual && op != Operator::kMatches && op != Operator::kMatchesNot;
}

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

bool Is(std::string_view word, std::string_view name) {
  return absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()),
                                absl::string_view(word.data(), word.size()));
}
bool IsNot(std::string_view name) { return Is("not", name); }
bool IsWord(std::string_view name) {
  return Is("and", name) || Is("or", name) || IsNot(name) || Is("in", name);
}

// A recursive-descent parser with one function for each rule in where.h.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Expression> Whole() {
    absl::StatusOr<Expression> expression = Any(0);
    if (!expression.ok()) return expression;
    if (!AtEnd()) return Expected("\"and\", \"or\" or the end");
    if (terms_ > kMaxTerms) {
      return absl::InvalidArgumentError(
          Concat("a condition of ", terms_, " comparisons and listed values; at most ", kMaxTerms,
                 " are allowed: a range, as in seed in (0..99), counts once"));
    }
    return expression;
  }
  // The fields of the conditions read so far.
  const std::vector<std::string>& fields() const { return fields_; }
  const std::vector<WantedValue>& values() const { return values_; }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool AtEnd() {
    SkipSpaces();
    return at_ == text_.size();
  }
  bool Take(char c) {
    SkipSpaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view Name() {
    SkipSpaces();
    std::size_t end = at_;
    while (end < text_.size() && IsNameCharacter(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool TakeWord(std::string_view word) {
    const std::string_view name = Name();
    if (!Is(word, name)) return false;
    at_ += name.size();
    return true;
  }

  absl::Status Error(std::size_t at, std::string_view what) const {
    return absl::InvalidArgumentError(Concat("condition, column ", at + 1, ": ", what));
  }
  absl::Status Expected(std::string_view what) {
    SkipSpaces();
    std::size_t end = at_;
    while (end < text_.size() && !IsSpace(text_[end])) ++end;
    const std::string there = at_ == text_.size()
                                  ? "the end"
                                  : Concat("\"", Shorten(text_.substr(at_, end - at_), 40), "\"");
    return Error(at_, Concat("expected ", what, ", not ", there));
  }

  absl::StatusOr<Expression> Any(int depth) {
    std::vector<Expression> parts;
    do {
      absl::StatusOr<Expression> part = All(depth);
      if (!part.ok()) return part;
      parts.push_back(*std::move(part));
    } while (TakeWord("or"));
    return AnyOf(std::move(parts));
  }

  absl::StatusOr<Expression> All(int depth) {
    std::vector<Expression> parts;
    do {
      absl::StatusOr<Expression> part = One(depth);
      if (!part.ok()) return part;
      parts.push_back(*std::move(part));
    } while (Take(',') || TakeWord("and") || AtOne());
    return AllOf(std::move(parts));
  }
  // Whether another condition follows without a word between.
  bool AtOne() {
    if (AtEnd()) return false;
    const std::string_view name = Name();
    return text_[at_] == '(' || (!name.empty() && (!IsWord(name) || IsNot(name)));
  }

  absl::StatusOr<Expression> One(int depth) {
    if (depth == kMaxDepth) return Error(at_, Concat("more than ", kMaxDepth, " levels"));
    if (TakeWord("not")) {
      absl::StatusOr<Expression> negated = One(depth + 1);
      if (!negated.ok()) return negated;
      return Not(*std::move(negated));
    }
    if (Take('(')) {
      absl::StatusOr<Expression> inner = Any(depth + 1);
      if (!inner.ok()) return inner;
      if (!Take(')')) return Expected("\"and\", \"or\" or \")\"");
      return inner;
    }
    return OneCondition();
  }

  absl::StatusOr<Expression> OneCondition() {
    Condition condition;
    const std::string_view name = Name();
    if (name.empty() || IsWord(name)) {
      return Expected("FIELD=VALUE, FIELD in (VALUE, ...), \"not\" or \"(\"");
    }
    const std::size_t begin = at_;
    condition.field = std::string(name);
    if (std::find(fields_.begin(), fields_.end(), condition.field) == fields_.end()) {
      fields_.push_back(condition.field);
    }
    at_ += name.size();
    if (absl::Status argument = TakeArgument(condition); !argument.ok()) return argument;
    SkipSpaces();
    for (const OperatorText& known : kOperators) {
      if (text_.substr(at_, known.text.size()) != known.text) continue;
      at_ += known.text.size();
      condition.op = known.op;
      if (absl::Status value = TakeValue(condition.value); !value.ok()) return value;
      // Too many terms: Whole() refuses the condition.
      if (++terms_ > kMaxTerms) return Expression{"1", {}};
      NoteWanted(condition, known.op == Operator::kEqual ? "=" : known.text);
      return Compiled(condition, begin);
    }
    const bool negated = TakeWord("not");
    if (TakeWord("in")) return Members(condition, begin, negated);
    return Expected(Concat("after \"", condition.field, "\" one of = != < <= > >= ~ !~ or \"in\""));
  }

  absl::Status TakeArgument(Condition& condition) {
    if (at_ == text_.size() || text_[at_] != '(') return absl::OkStatus();
    const std::size_t end = text_.find(')', at_);
    const std::string_view number =
        end == std::string_view::npos ? "" : text_.substr(at_ + 1, end - at_ - 1);
    double value = 0;
    if (!absl::SimpleAtod(absl::string_view(number.data(), number.size()), &value)) {
      ++at_;
      return Expected("a number and \")\"");
    }
    condition.argument = value;
    at_ = end + 1;
    return absl::OkStatus();
  }

  absl::StatusOr<Expression> Members(Condition condition, std::size_t begin, bool negated) {
    if (!Take('(')) return Expected("\"(\" and a list of values");
    std::vector<Expression> parts;
    do {
      if (absl::Status value = TakeValue(condition.value); !value.ok()) return value;
      if (++terms_ > kMaxTerms) continue;
      if (const auto range = RangeOf(condition.value)) {
        absl::StatusOr<Expression> within = Within(condition, *range, begin);
        if (!within.ok()) return within;
        parts.push_back(*std::move(within));
      } else {
        condition.values.push_back(condition.value);
      }
    } while (Take(','));
    if (!Take(')')) return Expected("\",\" or \")\"");
    if (!condition.values.empty()) {
      condition.op = Operator::kIn;
      NoteWanted(condition, "=");
      absl::StatusOr<Expression> listed = Compiled(condition, begin);
      if (!listed.ok()) return listed;
      parts.push_back(*std::move(listed));
    }
    if (parts.empty()) return Expression{"1", {}};  // too many terms: Whole() refuses the condition
    Expression out = AnyOf(std::move(parts));
    return negated ? Not(std::move(out)) : out;
  }

  using Range = std::pair<std::int64_t, std::int64_t>;
  // Reads "0..4", a range of integers.
  static std::optional<Range> RangeOf(const std::string& value) {
    const std::size_t dots = value.find("..");
    Range range;
    if (dots == std::string::npos || !absl::SimpleAtoi(value.substr(0, dots), &range.first) ||
        !absl::SimpleAtoi(value.substr(dots + 2), &range.second)) {
      return std::nullopt;
    }
    return range;
  }
  absl::StatusOr<Expression> Within(const Condition& condition, const Range& range,
                                    std::size_t begin) {
    Condition bound{.field = condition.field, .argument = condition.argument};
    bound.op = Operator::kGreaterOrEqual;
    bound.value = Concat(range.first);
    absl::StatusOr<Expression> low = Compiled(bound, begin);
    if (!low.ok()) return low;
    bound.op = Operator::kLessOrEqual;
    bound.value = Concat(range.second);
    absl::StatusOr<Expression> high = Compiled(bound, begin);
    if (!high.ok()) return high;
    return AllOf({*std::move(low), *std::move(high)});
  }

  absl::StatusOr<Expression> Compiled(const Condition& condition, std::size_t begin) {
    absl::StatusOr<Expression> out = Compile(condition);
    if (!out.ok()) return Error(begin, std::string(out.status().message()));
    out->sql = Concat("(", out->sql, ")");
    return out;
  }

  // epochs_to(x) is a measure of each job, which no list of jobs has.
  void NoteWanted(const Condition& condition, std::string_view op) {
    if (condition.argument || !ComparesWithValue(condition.op)) return;
    const auto note = [&](const std::string& value) {
      values_.push_back({condition.field, value, std::string(op)});
    };
    if (condition.op != Operator::kIn) note(condition.value);
    for (const std::string& value : condition.values) note(value);
  }

  absl::Status TakeValue(std::string& value) {
    SkipSpaces();
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) return TakeQuoted(value);
    std::size_t end = at_;
    int depth = 0;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (depth < 0 || (depth == 0 && (IsSpace(c) || c == ','))) break;
    }
    if (end == at_) return Expected("a value (in quotes where it is empty or has spaces)");
    value = std::string(text_.substr(at_, end - at_));
    at_ = end;
    return absl::OkStatus();
  }

  absl::Status TakeQuoted(std::string& value) {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    value.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c != quote) {
        value += c;
      } else if (at_ < text_.size() && text_[at_] == quote) {
        value += text_[at_++];
      } else {
        return absl::OkStatus();
      }
    }
    return Error(begin, "the quote is not closed");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int terms_ = 0;
  std::vector<std::string> fields_;
  std::vector<WantedValue> values_;
};

absl::StatusOr<Expression> Parse(const std::string& text, std::vector<std::string>* fields,
                                 std::vector<WantedValue>* values = nullptr) {
  if (text.size() > kMaxLength) {
    return absl::InvalidArgumentError(
        Concat("a condition of ", text.size(), " bytes; at most ", kMaxLength, " are allowed"));
  }
  if (!IsUtf8(text)) {
    return absl::InvalidArgumentError(
        Concat("the condition ", Shorten(text, kMaxShown), " is not UTF-8 text"));
  }
  if (std::all_of(text.begin(), text.end(), IsSpace)) return Expression{"1", {}};
  Parser parser(text);
  absl::StatusOr<Expression> expression = parser.Whole();
  if (fields != nullptr) *fields = parser.fields();
  if (values != nullptr) *values = parser.values();
  return expression;
}

}  // namespace

absl::StatusOr<Expression> CompileWhere(const std::string& text) { return Parse(text, nullptr); }

absl::StatusOr<std::vector<WantedValue>> ValuesOfWhere(const std::string& text) {
  std::vector<WantedValue> values;
  absl::StatusOr<Expression> expression = Parse(text, nullptr, &values);
  if (!expression.ok()) return expression.status();
  return values;
}

std::string WhereOne(const WantedValue& wanted) {
  std::string quoted;
  for (const char c : wanted.value) quoted += c == '\'' ? "''" : std::string(1, c);
  return Concat(wanted.field, " ", wanted.op, " '", quoted, "'");
}

absl::StatusOr<std::vector<std::string>> FieldsOfWhere(const std::string& text) {
  std::vector<std::string> fields;
  absl::StatusOr<Expression> expression = Parse(text, &fields);
  if (!expression.ok()) return expression.status();
  return fields;
}

}  // namespace pelab::db
