// The answer to one scrape in Prometheus' text format: families of metrics, and their samples. The
// registry of prometheus-cpp is not used, because nearly all values are read at the time of the
// scrape, and counters are kept without a lock. Samples become text when they are added
// (docs/adr/0052); a unit test compares the text with that of prometheus-cpp's serializer.
#pragma once

#include <prometheus/histogram.h>

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"

namespace pelab::metrics {

// The Content-Type of Scrape::Text.
inline constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// Names and values of labels. The values may be any UTF-8.
using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Not thread-safe.
class Scrape {
 public:
  // One metric and its samples. A family without samples is in the answer too, with its help and
  // type. It must not outlive its scrape. No two samples of a family may have the same labels:
  // Prometheus would refuse the whole scrape.
  class Family {
   public:
    Family& Add(double value, Labels labels = {});
    Family& Add(const prometheus::Histogram& histogram, Labels labels = {});

   private:
    friend class Scrape;
    Family(std::string name, std::string& text) : name_(std::move(name)), text_(text) {}
    // A line: the name and `suffix`, the labels, then `bound` as the label "le" if it is not null.
    void AddLine(std::string_view suffix, Labels labels, const double* bound, double value);

    const std::string name_;
    std::string& text_;
  };

  // `help` is one line. Each name may be used once.
  Family Gauge(std::string name, std::string_view help);
  Family Counter(std::string name, std::string_view help);
  Family Histogram(std::string name, std::string_view help);

  std::string Text() const;

 private:
  Family Begin(std::string_view type, std::string name, std::string_view help);

  std::deque<std::string> families_;  // their lines; a deque, so that they keep their places
};

// Seconds since 1970, as Prometheus writes times.
double UnixSeconds(absl::Time time);

// pelab_build_info. `schema` is that of the database; empty: the program has none.
void AddBuildInfo(Scrape& scrape, std::string_view schema);

}  // namespace pelab::metrics
