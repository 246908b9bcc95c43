#include "core/metrics/scrape.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace pelab::metrics {
namespace {

// Integers up to this size are exact, and are written without an exponent.
constexpr double kMostInteger = 1e15;

void AppendNumber(double value, std::string& text) {
  if (std::isnan(value)) {
    text += "NaN";
    return;
  }
  if (std::isinf(value)) {
    text += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  std::array<char, 32> digits{};
  char* const end = digits.data() + digits.size();
  const bool integer = std::abs(value) < kMostInteger && std::trunc(value) == value;
  const auto written = integer ? std::to_chars(digits.data(), end, static_cast<std::int64_t>(value))
                               : std::to_chars(digits.data(), end, value);
  text.append(digits.data(), written.ptr);
}

// The format's escapes; only the values of labels have quotation marks.
void AppendEscaped(std::string_view from, bool quoted, std::string& text) {
  for (const char byte : from) {
    if (byte == '\n') {
      text += "\\n";
      continue;
    }
    if (byte == '\\' || (quoted && byte == '"')) text += '\\';
    text += byte;
  }
}

void AppendLabel(std::string_view name, std::string_view value, std::string& text) {
  text.append(text.back() == '{' ? "" : ",").append(name).append("=\"");
  AppendEscaped(value, /*quoted=*/true, text);
  text += '"';
}

}  // namespace

void Scrape::Family::AddLine(std::string_view suffix, Labels labels, const double* bound,
                             double value) {
  text_.append(name_).append(suffix);
  if (labels.size() > 0 || bound != nullptr) {
    text_ += '{';
    for (const auto& [name, label] : labels) AppendLabel(name, label, text_);
    if (bound != nullptr) {
      std::string number;
      AppendNumber(*bound, number);
      AppendLabel("le", number, text_);
    }
    text_ += '}';
  }
  text_ += ' ';
  AppendNumber(value, text_);
  text_ += '\n';
}

Scrape::Family& Scrape::Family::Add(double value, Labels labels) {
  AddLine("", labels, /*bound=*/nullptr, value);
  return *this;
}

Scrape::Family& Scrape::Family::Add(const prometheus::Histogram& histogram, Labels labels) {
  const prometheus::ClientMetric::Histogram now = histogram.Collect().histogram;
  AddLine("_count", labels, /*bound=*/nullptr, static_cast<double>(now.sample_count));
  AddLine("_sum", labels, /*bound=*/nullptr, now.sample_sum);
  for (const auto& bucket : now.bucket) {  // the last bound is infinite
    AddLine("_bucket", labels, &bucket.upper_bound, static_cast<double>(bucket.cumulative_count));
  }
  return *this;
}

Scrape::Family Scrape::Begin(std::string_view type, std::string name, std::string_view help) {
  std::string& text = families_.emplace_back();
  text.append("# HELP ").append(name).append(" ");
  AppendEscaped(help, /*quoted=*/false, text);
  text.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  return {std::move(name), text};
}

Scrape::Family Scrape::Gauge(std::string name, std::string_view help) {
  return Begin("gauge", std::move(name), help);
}

Scrape::Family Scrape::Counter(std::string name, std::string_view help) {
  return Begin("counter", std::move(name), help);
}

Scrape::Family Scrape::Histogram(std::string name, std::string_view help) {
  return Begin("histogram", std::move(name), help);
}

std::string Scrape::Text() const {
  std::size_t bytes = 0;
  for (const std::string& family : families_) bytes += family.size();
  std::string text;
  text.reserve(bytes);
  for (const std::string& family : families_) text += family;
  return text;
}

double UnixSeconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

void AddBuildInfo(Scrape& scrape, std::string_view schema) {
  auto info = scrape.Gauge("pelab_build_info",
                           "1. Its labels are the program's version and its database's schema.");
  if (schema.empty()) {
    info.Add(1, {{"version", PELAB_VERSION}});
  } else {
    info.Add(1, {{"version", PELAB_VERSION}, {"schema", schema}});
  }
}

}  // namespace pelab::metrics
