#include "core/experiment/shortcut.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace pelab::experiment {
namespace {

double Real(std::int64_t number) { return static_cast<double>(number); }

// The job's examples have `places` places of the first trigger for each distance, as equally likely
// as any other. If some are held out, the test set has fewer: it can be better guessed by this
// factor at most.
double HeldOutFactor(const Job& job, std::int64_t places) {
  if (!job.HasField("task.held_out_fraction")) return 1;
  const double wanted = std::floor(job.Real("task.held_out_fraction") * Real(places) + 0.5);
  const double held_out = std::clamp(wanted, 1.0, std::max(1.0, Real(places - 1)));
  return Real(places) / held_out;
}

// The second trigger is at start + distance. Every place that it can have is worth one of the
// equally likely pairs of start and distance.
Shortcut OfCleanDistance(const Job& job) {
  const std::int64_t distances = job.Int("task.max_distance");
  const std::int64_t starts = job.Int("task.length") - distances;
  const double places = Real(starts + distances - 1);
  const double accuracy = HeldOutFactor(job, starts) * places / Real(starts * distances);
  return {std::min(accuracy, 1.0), "the second trigger's place alone"};
}

// The largest probability of any gap, jointly with each length: the left and the right segment have
// 1 to `segment` tokens, the gap 1 to `gap`. Longer sequences are cut to `most` tokens.
double OfLength(std::int64_t segment, std::int64_t gap, std::int64_t most) {
  std::vector<double> of_segments(static_cast<std::size_t>(2 * segment + 1));  // by left + right
  for (std::int64_t sum = 2; sum <= 2 * segment; ++sum) {
    const std::int64_t ways = std::min(sum - 1, 2 * segment + 1 - sum);
    of_segments[static_cast<std::size_t>(sum)] = Real(ways) / Real(segment * segment);
  }
  const auto probability = [&](std::int64_t length, std::int64_t of_gap) {
    const std::int64_t sum = length - 2 - of_gap;
    return sum < 2 || sum > 2 * segment ? 0 : of_segments[static_cast<std::size_t>(sum)];
  };
  double total = 0;
  const std::int64_t longest = 2 * segment + gap + 2;
  for (std::int64_t length = 5; length <= std::min(most, longest); ++length) {
    double best = 0;
    for (std::int64_t m = 1; m <= gap; ++m) {
      double joint = probability(length, m);
      // The cut length stands for all that were at least as long.
      for (std::int64_t n = most + 1; length == most && n <= longest; ++n) {
        joint += probability(n, m);
      }
      best = std::max(best, joint);
    }
    total += best;
  }
  return total / Real(gap);
}

Shortcut OfPublishedDistance(const Job& job) {
  const std::int64_t segment = job.Int("task.max_segment"), gap = job.Int("task.max_gap");
  const double held_out = HeldOutFactor(job, segment);
  const double length = held_out * OfLength(segment, gap, job.Int("task.truncate"));
  const double place = held_out * Real(segment + gap - 1) / Real(segment * gap);
  if (length >= place) return {std::min(length, 1.0), "the length alone"};
  return {std::min(place, 1.0), "the second trigger's place alone"};
}

// Whether one place has a trigger: with one, the largest count is the likeliest; without one, the
// smallest.
Shortcut OfCounting(const Job& job) {
  const double content =
      Real(job.Choice("task.definition") == "clean" ? job.Int("task.length")
                                                    : job.Int("task.content_length"));
  const std::int64_t most = job.Int("task.max_count");
  const std::int64_t least = job.Choice("task.scored_classes") == "nonzero" ? 1 : 0;
  const double with = Real(most) / content, without = 1 - Real(least) / content;
  return {(with + without) / Real(most - least + 1), "one place alone"};
}

}  // namespace

Shortcut BestShortcut(const Job& job) {
  const Shortcut guess{ChanceAccuracy(job), "guessing"};
  if (job.task == catalog::OwnTask().name) return guess;
  const bool clean = job.Choice("task.definition") == "clean";
  const Shortcut found = job.task == "counting" ? OfCounting(job)
                         : clean                ? OfCleanDistance(job)
                                                : OfPublishedDistance(job);
  return found.accuracy > guess.accuracy ? found : guess;
}

}  // namespace pelab::experiment
