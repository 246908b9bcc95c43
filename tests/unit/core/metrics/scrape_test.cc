// The text of a scrape, and whose disk is whose.
#include "core/metrics/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <vector>

#include "core/metrics/disks.h"

namespace pelab::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Scrape, EachFamilyHasItsTypeAndItsSamples) {
  Scrape scrape;
  scrape.Gauge("g", "A gauge.").Add(0.5).Add(-2, {{"a", "1"}, {"b", "2"}});
  scrape.Counter("c_total", "A counter.").Add(123456789012345);
  scrape.Gauge("nothing", "Empty.");
  EXPECT_EQ(scrape.Text(),
            "# HELP g A gauge.\n# TYPE g gauge\ng 0.5\ng{a=\"1\",b=\"2\"} -2\n"
            "# HELP c_total A counter.\n# TYPE c_total counter\nc_total 123456789012345\n"
            "# HELP nothing Empty.\n# TYPE nothing gauge\n");
}

TEST(Scrape, LabelsMayHaveAnyText) {
  Scrape scrape;
  scrape.Gauge("g", "h").Add(1, {{"worker", "a \"b\"\\\n\xc3\xbc"}});
  EXPECT_THAT(scrape.Text(), HasSubstr("g{worker=\"a \\\"b\\\"\\\\\\n\xc3\xbc\"} 1\n"));
}

TEST(Scrape, BucketsOfAHistogramHoldWhatIsNotAboveTheirBound) {
  prometheus::Histogram histogram({0.1, 0.5});
  for (const double seconds : {0.05, 0.1, 0.11, 0.5, 7.0}) histogram.Observe(seconds);
  Scrape scrape;
  scrape.Histogram("h_seconds", "h").Add(histogram, {{"method", "m"}});
  EXPECT_EQ(scrape.Text(),
            "# HELP h_seconds h\n# TYPE h_seconds histogram\n"
            "h_seconds_count{method=\"m\"} 5\nh_seconds_sum{method=\"m\"} 7.76\n"
            "h_seconds_bucket{method=\"m\",le=\"0.1\"} 2\n"
            "h_seconds_bucket{method=\"m\",le=\"0.5\"} 4\n"
            "h_seconds_bucket{method=\"m\",le=\"+Inf\"} 5\n");
}

// The lines of a scrape, each without its number, and the numbers.
std::pair<std::vector<std::string>, std::vector<double>> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::vector<double> numbers;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t space = line.starts_with("#") ? line.size() : line.rfind(' ');
    lines.push_back(line.substr(0, space));
    if (space < line.size()) numbers.push_back(std::strtod(line.c_str() + space, nullptr));
  }
  return {lines, numbers};
}

TEST(Scrape, IsWhatPrometheusCppWouldWrite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0,    1,     -3,   0.1,   0.87,      1e6,        1e15,
                                      1e22, 1e-30, 2e-5, 1e300, kInfinity, -kInfinity, 1.0 / 3};
  const std::string label = "a \"b\"\\\n\xc3\xbc";
  prometheus::Histogram histogram({0.0025, 0.1, 1, 604800});
  for (const double seconds : {0.001, 0.2, 0.3, 5.0, 1e7}) histogram.Observe(seconds);
  prometheus::MetricFamily gauges;
  gauges.name = "g";
  gauges.help = "A gauge.";
  gauges.type = prometheus::MetricType::Gauge;
  prometheus::MetricFamily times;
  times.name = "t_seconds";
  times.help = "Times.";
  times.type = prometheus::MetricType::Histogram;
  times.metric.push_back(histogram.Collect());
  times.metric.back().label = {{"method", label}};
  Scrape scrape;
  auto family = scrape.Gauge("g", gauges.help);
  for (std::size_t i = 0; i < values.size(); ++i) {
    prometheus::ClientMetric& metric = gauges.metric.emplace_back();
    metric.gauge.value = values[i];
    metric.label = {{"n", std::to_string(i)}, {"of", label}};
    family.Add(values[i], {{"n", std::to_string(i)}, {"of", label}});
  }
  scrape.Histogram("t_seconds", times.help).Add(histogram, {{"method", label}});
  const std::string wanted = prometheus::TextSerializer().Serialize({gauges, times});
  EXPECT_EQ(Lines(scrape.Text()), Lines(wanted));
  Scrape other;
  other.Gauge("n", "Not a number.").Add(std::nan(""));
  EXPECT_THAT(other.Text(), HasSubstr("\nn NaN\n"));
}

TEST(Scrape, TimesAreSecondsSince1970) { EXPECT_EQ(UnixSeconds(absl::FromUnixMillis(1'500)), 1.5); }

TEST(Disks, AFileSystemIsNamedByItsMount) {
  EXPECT_EQ(MountOf("/"), "/");
  EXPECT_EQ(MountOf("/proc/self"), "/proc");
  EXPECT_EQ(MountOf("/proc/.."), "/");
  EXPECT_EQ(MountOf("/nowhere/at/all"), "");
}

TEST(Disks, EachFileSystemIsThereOnce) {
  Scrape scrape;
  const std::string folder = testing::TempDir();
  AddFreeBytes(scrape, {folder, folder + "/.", "/nowhere/at/all"});
  const std::string text = scrape.Text();
  const std::string sample = "\npelab_disk_free_bytes{mount=\"" + MountOf(folder) + "\"} ";
  const std::size_t at = text.find(sample);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(sample, at + 1), std::string::npos) << text;
  EXPECT_THAT(text, Not(HasSubstr("nowhere")));
}

}  // namespace
}  // namespace pelab::metrics
