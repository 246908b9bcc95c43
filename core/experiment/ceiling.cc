#include "core/experiment/ceiling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "core/base/random.h"
#include "core/catalog/catalog.h"

namespace pelab::experiment {
namespace {

// Sequences in which no trigger recurs are not counted: they are not ambiguous. Where that is rare,
// fewer sequences say enough; where sequences are long, fewer have to do.
constexpr std::uint64_t kSequences = 10'000;
constexpr std::uint64_t kTries = 20 * kSequences;
constexpr std::size_t kMostWords = 2'000'000;    // in all sequences
constexpr std::int64_t kFirst = 0, kSecond = 1;  // the triggers: which words they are is irrelevant

// The sizes of `published` distance.
struct Sizes {
  std::int64_t words = 0, segment = 0, gap = 0, cut = 0;
  bool operator<(const Sizes& other) const {
    return std::tie(words, segment, gap, cut) <
           std::tie(other.words, other.segment, other.gap, other.cut);
  }
};

// The share of the sequences in which a trigger recurs in a segment.
double ShareThatRecurs(const Sizes& sizes) {
  const auto lacks_both = [&](std::int64_t s) {
    const auto words = static_cast<double>(sizes.words);
    const auto left = std::max(0.0, words - static_cast<double>(s));
    return left * std::max(0.0, left - 1) / (words * (words - 1));
  };
  std::vector<double> up_to = {0};  // by s: the sum over segments of 1 to s words
  for (std::int64_t s = 1; s <= sizes.segment; ++s) up_to.push_back(up_to.back() + lacks_both(s));
  double lacks = 0;
  for (std::int64_t left = 1; left <= sizes.segment; ++left) {
    for (std::int64_t gap = 1; gap <= sizes.gap; ++gap) {
      // The sequence shows no more words of the right segment than this.
      const std::int64_t shown = std::min(sizes.segment, sizes.cut - left - gap - 2);
      const double right = up_to[static_cast<std::size_t>(shown)] +
                           static_cast<double>(sizes.segment - shown) * lacks_both(shown);
      lacks += lacks_both(left) * lacks_both(gap) * right;
    }
  }
  return 1 - lacks / static_cast<double>(sizes.segment * sizes.gap * sizes.segment);
}

// Draws sequences of the definition in which a trigger recurs.
class Sequences {
 public:
  explicit Sequences(const Sizes& sizes) : sizes_(sizes) {
    for (std::int64_t word = kSecond + 1; word < sizes.words; ++word) others_.push_back(word);
  }

  // The words of sequence `number`; empty if no trigger recurs in it.
  const std::vector<std::int64_t>& Draw(std::uint64_t number) {
    CounterRandom random(/*seed=*/0, "distance/ceiling", number);
    const std::int64_t left = 1 + Below(sizes_.segment, &random);
    const std::int64_t gap = 1 + Below(sizes_.gap, &random);
    const std::int64_t right =
        std::min(1 + Below(sizes_.segment, &random), sizes_.cut - left - gap - 2);
    const Places places[] = {Place(left, &random), Place(gap, &random), Place(right, &random)};
    words_.clear();
    if (std::none_of(std::begin(places), std::end(places),
                     [](const Places& at) { return at.first < at.size || at.second < at.size; })) {
      return words_;
    }
    Append(places[0], &random);
    words_.push_back(kFirst);
    Append(places[1], &random);
    words_.push_back(kSecond);
    Append(places[2], &random);
    return words_;
  }

 private:
  // A segment is the beginning of a random order of all words. The triggers have these places in
  // that order.
  struct Places {
    std::int64_t size, first, second;
  };

  static std::int64_t Below(std::int64_t bound, CounterRandom* random) {
    return random->Below(static_cast<std::uint32_t>(bound));
  }
  Places Place(std::int64_t size, CounterRandom* random) const {
    const std::int64_t first = Below(sizes_.words, random);
    const std::int64_t second = Below(sizes_.words - 1, random);
    return {size, first, second + (second >= first ? 1 : 0)};
  }
  // The other words are the first steps of a Fisher-Yates shuffle, whatever their order is before.
  void Append(const Places& places, CounterRandom* random) {
    std::size_t drawn = 0;
    for (std::int64_t at = 0; at < places.size; ++at) {
      if (at == places.first || at == places.second) {
        words_.push_back(at == places.first ? kFirst : kSecond);
        continue;
      }
      const auto left = static_cast<std::int64_t>(others_.size() - drawn);
      std::swap(others_[drawn], others_[drawn + static_cast<std::size_t>(Below(left, random))]);
      words_.push_back(others_[drawn++]);
    }
  }

  const Sizes sizes_;
  std::vector<std::int64_t> others_;  // the words that are no triggers
  std::vector<std::int64_t> words_;
};

// The probability of the likeliest gap, given a sequence. With the first trigger at p and the
// second at q, the segments have p, q - p - 1 and n - q - 1 different words, and a segment of s
// words is one of W (W - 1) … (W - s + 1) that are equally likely.
class LargestPosterior {
 public:
  explicit LargestPosterior(const Sizes& sizes)
      : sizes_(sizes), seen_in_(static_cast<std::size_t>(sizes.words)) {
    double sum = 0;
    for (std::int64_t s = 0; s <= std::max(sizes.segment, sizes.gap); ++s) {
      log_ways_.push_back(sum);
      sum += std::log(static_cast<double>(sizes.words - s));
    }
  }

  double operator()(const std::vector<std::int64_t>& words) {
    const auto n = static_cast<std::int64_t>(words.size());
    std::vector<std::pair<std::int64_t, double>> logs;  // gaps and logarithms of likelihoods
    for (std::int64_t p = 1; p <= std::min(sizes_.segment, n - 1); ++p) {
      if (words[p] != kFirst || !Different(words, 0, p)) continue;
      for (std::int64_t q = p + 2; q <= std::min(p + sizes_.gap + 1, n - 1); ++q) {
        if (words[q] == kSecond && IsPossible(words, p, q)) {
          logs.emplace_back(q - p - 1, LogLikelihood(n, p, q));
        }
      }
    }
    double top = -std::numeric_limits<double>::infinity();
    for (const auto& [gap, log] : logs) top = std::max(top, log);
    std::map<std::int64_t, double> by_gap;
    double total = 0, largest = 0;
    for (const auto& [gap, log] : logs) {
      const double likelihood = std::exp(log - top);
      total += likelihood;
      largest = std::max(largest, by_gap[gap] += likelihood);
    }
    return largest / total;
  }

 private:
  bool Different(const std::vector<std::int64_t>& words, std::int64_t begin, std::int64_t end) {
    ++range_;
    return std::none_of(words.begin() + begin, words.begin() + end, [this](std::int64_t word) {
      return std::exchange(seen_in_[static_cast<std::size_t>(word)], range_) == range_;
    });
  }

  bool IsPossible(const std::vector<std::int64_t>& words, std::int64_t p, std::int64_t q) {
    const auto n = static_cast<std::int64_t>(words.size());
    const std::int64_t right = n - q - 1;
    return right <= sizes_.segment && (right > 0 || n == sizes_.cut) &&
           Different(words, p + 1, q) && Different(words, q + 1, n);
  }
  double LogLikelihood(std::int64_t n, std::int64_t p, std::int64_t q) const {
    const std::int64_t right = n - q - 1;
    // A sequence that was cut does not show how long its right segment was.
    const std::int64_t lengths =
        n == sizes_.cut ? sizes_.segment - std::max<std::int64_t>(right, 1) + 1 : 1;
    return std::log(static_cast<double>(lengths)) - log_ways_[p] - log_ways_[q - p - 1] -
           log_ways_[right];
  }

  const Sizes sizes_;
  std::vector<double> log_ways_;        // of a segment of s words, by s
  std::vector<std::uint64_t> seen_in_;  // by word: the last range of words that had it
  std::uint64_t range_ = 0;
};

double OfPublishedDistance(const Sizes& sizes) {
  static Mutex mutex;
  static std::map<Sizes, double> known ABSL_GUARDED_BY(mutex);
  {
    const MutexLock lock(&mutex);
    const auto found = known.find(sizes);
    if (found != known.end()) return found->second;
  }
  Sequences sequences(sizes);
  LargestPosterior largest(sizes);
  double wrong = 0;
  std::uint64_t drawn = 0;
  std::size_t words_drawn = 0;
  for (std::uint64_t i = 0; i < kTries && drawn < kSequences && words_drawn < kMostWords; ++i) {
    const std::vector<std::int64_t>& words = sequences.Draw(i);
    if (words.empty()) continue;
    wrong += 1 - largest(words);
    words_drawn += words.size();
    ++drawn;
  }
  const double mean = drawn > 0 ? wrong / static_cast<double>(drawn) : 0;
  const MutexLock lock(&mutex);
  return known.emplace(sizes, 1 - ShareThatRecurs(sizes) * mean).first->second;
}

}  // namespace

std::optional<double> BestAccuracy(const Job& job) {
  if (job.task == catalog::OwnTask().name) return std::nullopt;
  if (job.task != "distance" || job.Choice("task.definition") == "clean") return 1;
  return OfPublishedDistance({job.Int("task.vocabulary") - catalog::kFirstWord,
                              job.Int("task.max_segment"), job.Int("task.max_gap"),
                              job.Int("task.truncate")});
}

}  // namespace pelab::experiment
