// Words and numbers as text: allowed values of a field, values, suggestions.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/catalog/catalog.h"

namespace pelab::catalog {

namespace {

template <typename Strings>
std::string Join(const Strings& strings) {
  std::string joined;
  for (const auto& string : strings) {
    if (!joined.empty()) joined += ", ";
    joined += string;
  }
  return joined;
}

std::string RangeInWords(const Field& field) {
  const std::string low = NumberToText(field.min);
  const std::string high = NumberToText(field.max);
  if (!field.min_exclusive && !field.max_exclusive) return "from " + low + " to " + high;
  return (field.min_exclusive ? "above " : "at least ") + low + " and " +
         (field.max_exclusive ? "below " : "at most ") + high;
}

// Inserts the decimal point into `digits`, per ECMA-262 Number::toString with k digits and exponent
// n.
std::string PlaceDecimalPoint(const std::string& digits, int n) {
  const int k = static_cast<int>(digits.size());
  if (k <= n && n <= 21) return digits + std::string(n - k, '0');
  if (0 < n && n <= 21) return digits.substr(0, n) + "." + digits.substr(n);
  if (-6 < n && n <= 0) return "0." + std::string(-n, '0') + digits;
  const int exponent = n - 1;
  return digits.substr(0, 1) + (k > 1 ? "." + digits.substr(1) : "") + "e" +
         (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
}

// Edit distance: insertions, deletions, substitutions and swaps of neighbors, at a cost of 1 each.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      cost[i][j] =
          std::min({cost[i - 1][j - 1] + (same ? 0 : 1), cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string Condition::ToText() const {
  const std::string either = or_choice.empty() ? "" : " or " + std::string(or_choice);
  return std::string(field) + (unless ? " is not " : " is ") + std::string(choice) + either;
}

std::string_view FieldTypeName(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "bool";
    case FieldType::kInt:
      return "int";
    case FieldType::kReal:
      return "real";
    case FieldType::kChoice:
      return "choice";
    case FieldType::kChoiceSet:
      return "set";
    case FieldType::kIntSet:
      return "int set";
    case FieldType::kText:
      return "text";
  }
  return "?";
}

std::string NumberToText(double number) {
  if (number == 0) return "0";  // -0 too
  if (number < 0) return "-" + NumberToText(-number);
  char buffer[32] = {};  // always terminated: the longest text has 24 characters
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer - 1, number, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = text.find('e');
  if (e == std::string_view::npos) return std::string(text);  // not finite: never in a job
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);  // remove the decimal point
  const int exponent = std::atoi(buffer + e + 1 + (text[e + 1] == '+' ? 1 : 0));
  return PlaceDecimalPoint(digits, exponent + 1);
}

std::string ToText(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value)) return NumberToText(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* set = std::get_if<std::vector<std::string>>(&value))
    return "[" + Join(*set) + "]";
  std::vector<std::string> numbers;
  for (const std::int64_t number : std::get<std::vector<std::int64_t>>(value)) {
    numbers.push_back(std::to_string(number));
  }
  return "[" + Join(numbers) + "]";
}

std::string Allowed(const Field& field) {
  switch (field.type) {
    case FieldType::kBool:
      return "true or false";
    case FieldType::kInt:
      return "an integer " + RangeInWords(field);
    case FieldType::kReal:
      return "a number " + RangeInWords(field);
    case FieldType::kChoice:
      return field.choices.size() == 1 ? std::string(field.choices[0])
                                       : "one of " + Join(field.choices);
    case FieldType::kChoiceSet:
      return "a list of " + Join(field.choices) + ", each at most once";
    case FieldType::kIntSet:
      return "a list of integers " + RangeInWords(field) + ", each at most once";
    case FieldType::kText:
      return std::string(field.rule);
  }
  return "";
}

std::string_view DidYouMean(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongestWord = 64;  // bounds the work on hostile input
  if (word.empty() || word.size() > kLongestWord) return "";
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace pelab::catalog
