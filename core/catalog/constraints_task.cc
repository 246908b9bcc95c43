// Constraints on the task: whether its sequences and labels can be generated. Each check returns ""
// if the constraint holds, or if the job lacks one of the fields that the check reads.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/catalog/job_view.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

std::string DistanceFits(const Values& values) {
  const JobView job(values);
  if (!job.Has("task.max_distance") || job.Int("task.length") > job.Int("task.max_distance"))
    return "";
  return "at least " + std::to_string(job.Int("task.max_distance") + 1) +
         ": the sequence is too short for two triggers " + job.Named("task.max_distance") +
         " apart";
}

std::string TruncateFits(const Values& values) {
  return AtMost(JobView(values), "task.truncate", "task.length");
}

std::string ContentFits(const Values& values) {
  return AtMost(JobView(values), "task.content_length", "task.length");
}

std::string TriggersSurviveTruncation(const Values& values) {
  const JobView job(values);
  if (!job.Has("task.truncate")) return "";
  const std::int64_t needed = job.Int("task.max_segment") + job.Int("task.max_gap") + 2;
  if (job.Int("task.truncate") >= needed) return "";
  return "at least " + std::to_string(needed) + ", which is " + job.Named("task.max_segment") +
         " plus " + job.Named("task.max_gap") + " plus the 2 triggers: the sequence is too short";
}

std::string CountFits(const Values& values) {
  const JobView job(values);
  return AtMost(job, "task.max_count",
                job.Has("task.content_length") ? "task.content_length" : "task.length");
}

std::string TriggersFitVocabulary(const Values& values) {
  const JobView job(values);
  const std::int64_t needed = kFirstWord + job.Int("task.triggers") + 1;
  if (!job.Has("task.triggers") || job.Int("task.vocabulary") >= needed) return "";
  return "at least " + std::to_string(needed) + ": " + std::to_string(kFirstWord) +
         " ids that are no words, " + job.Named("task.triggers") + " and one other word";
}

std::string SegmentsFitVocabulary(const Values& values) {
  const JobView job(values);
  const std::int64_t longest = std::max(job.Int("task.max_segment"), job.Int("task.max_gap"));
  if (!job.Has("task.max_gap") || job.Int("task.vocabulary") - kFirstWord >= longest) return "";
  return "at least " + std::to_string(kFirstWord + longest) + ": " + std::to_string(kFirstWord) +
         " ids that are no words and " + std::to_string(longest) +
         " different words for the longest segment";
}

std::int64_t LargestLabel(const JobView& job) {
  if (job.Has("task.classes")) return job.Int("task.first_label") + job.Int("task.classes") - 1;
  if (job.Is("task", "counting")) return job.Int("task.max_count");
  return job.Has("task.max_gap") ? job.Int("task.max_gap") + 1 : job.Int("task.max_distance");
}

std::string LabelsFitVocabulary(const Values& values) {
  const JobView job(values);
  const std::int64_t largest = LargestLabel(job);
  if (!job.Is("task.label_space", "vocabulary") || largest < job.Int("task.vocabulary")) return "";
  return "at least " + std::to_string(largest + 1) +
         ": task.label_space vocabulary needs an id for the largest label, " +
         std::to_string(largest);
}

std::string LabelsAreIds(const Values& values) {
  const JobView job(values);
  if (!job.Is("task.label_space", "vocabulary") || job.Int("task.first_label") >= 0) return "";
  return "exact: " + job.Named("task.first_label") + " is no token id";
}

// The logarithm of the number of different sequences of the rarest class, and the number of
// classes. The logarithm is NaN if another constraint already fails.
struct Rarest {
  double log_sequences;
  std::int64_t classes;
};

// ln of n(n-1)…(n-k+1). std::lgamma is not used because it writes a global.
double LogFalling(std::int64_t n, std::int64_t k) {
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += std::log(static_cast<double>(n - i));
  return sum;
}

Rarest RarestDistance(const JobView& job) {
  const std::int64_t words = job.Int("task.vocabulary") - kFirstWord;
  const std::int64_t length = job.Int("task.length");
  if (job.Has("task.max_distance")) {
    const std::int64_t starts = length - job.Int("task.max_distance");
    const double fillers =
        static_cast<double>(length - 2) * std::log(static_cast<double>(words - 2));
    return {starts < 1 ? NAN : std::log(static_cast<double>(starts)) + fillers,
            job.Int("task.max_distance")};
  }
  // The rarest class has a gap of one word between two segments. The words of each segment are
  // drawn without replacement.
  const std::int64_t segment = job.Int("task.max_segment");
  if (segment > words) return {NAN, 1};
  return {std::log(static_cast<double>(words)) + 2 * LogFalling(words, segment),
          job.Int("task.max_gap")};
}

Rarest RarestCount(const JobView& job) {
  const std::int64_t length =
      job.Int(job.Has("task.content_length") ? "task.content_length" : "task.length");
  const std::int64_t triggers = job.Int("task.triggers");
  const std::int64_t others = job.Int("task.vocabulary") - kFirstWord - triggers;
  const std::int64_t most = job.Int("task.max_count");
  if (others < 1 || most > length) return {NAN, 1};
  // The number of choices of places, times the number of choices of words. The product is
  // log-concave in the count, so its minimum is at the smallest or the largest count.
  const double log_others = std::log(static_cast<double>(others));
  const double none = static_cast<double>(length) * log_others;
  const double all = LogFalling(length, most) - LogFalling(most, most) +
                     static_cast<double>(most) * std::log(static_cast<double>(triggers)) +
                     static_cast<double>(length - most) * log_others;
  return {std::min(none, all), most + 1};
}

std::string EnoughSequences(const Values& values) {
  const JobView job(values);
  if (!job.Is("task.split", "disjoint")) return "";
  const Rarest rarest = job.Is("task", "counting") ? RarestCount(job) : RarestDistance(job);
  constexpr double kSpare =
      10;  // possible sequences for each drawn one, so that few are drawn again
  const double bound =
      std::exp(rarest.log_sequences) / kSpare * static_cast<double>(rarest.classes) -
      static_cast<double>(job.Int("task.test_examples"));
  if (std::isnan(bound) || static_cast<double>(job.Int("task.train_examples")) <= bound) return "";
  return "at most " + NumberToText(std::floor(std::max(0.0, bound))) + " beside " +
         job.Named("task.test_examples") +
         ": the rarest class has too few different sequences for training and test sets that share "
         "none";
}

bool HoldsPlacesOut(const JobView& job) {
  return job.Is("task.split", "held_out_cells") || job.Is("task.split", "held_out_starts");
}

std::string HeldOutDistance(const Values& values) {
  const JobView job(values);
  if (!HoldsPlacesOut(job) || job.Is("task", "distance")) return "";
  return "disjoint or random: only the task distance has start places to hold out";
}

std::string HeldOutStarts(const Values& values) {
  const JobView job(values);
  if (!HoldsPlacesOut(job) || !job.Is("task", "distance")) return "";
  const bool published = job.Has("task.max_segment");
  const std::int64_t starts = published ? job.Int("task.max_segment")
                                        : job.Int("task.length") - job.Int("task.max_distance");
  if (starts >= 2) return "";
  return "disjoint or random: the others share out a distance's start places, at least 2; "
         "here there is " +
         std::to_string(std::max<std::int64_t>(0, starts)) +
         (published
              ? " with " + job.Named("task.max_segment")
              : " with " + job.Named("task.length") + " and " + job.Named("task.max_distance"));
}

}  // namespace

std::vector<Constraint> TaskConstraints() {
  return {
      {"distance-fits",
       "task.length",
       {"task.max_distance"},
       DistanceFits,
       "distance: task.length is above task.max_distance"},
      {"truncate-fits",
       "task.truncate",
       {"task.length"},
       TruncateFits,
       "task.truncate is at most task.length"},
      {"triggers-survive",
       "task.truncate",
       {"task.max_segment", "task.max_gap", "task.length"},
       TriggersSurviveTruncation,
       "task.truncate leaves room for a segment, both triggers and the gap"},
      {"content-fits",
       "task.content_length",
       {"task.length"},
       ContentFits,
       "task.content_length is at most task.length"},
      {"count-fits",
       "task.max_count",
       {"task.content_length", "task.length"},
       CountFits,
       "counting: task.max_count is at most the words of a sequence"},
      {"triggers-fit",
       "task.vocabulary",
       {"task.triggers"},
       TriggersFitVocabulary,
       "counting: task.vocabulary has room for the triggers and another word"},
      {"segments-fit",
       "task.vocabulary",
       {"task.max_gap", "task.max_segment"},
       SegmentsFitVocabulary,
       "published distance: a segment's words all differ"},
      {"labels-fit",
       "task.vocabulary",
       {"task.label_space"},
       LabelsFitVocabulary,
       "label space vocabulary: the largest label is a token id"},
      {"labels-are-ids",
       "task.label_space",
       {},
       LabelsAreIds,
       "label space vocabulary: the smallest label of own data is 0 or more"},
      {"held-out-distance",
       "task.split",
       {},
       HeldOutDistance,
       "task.split held_out_cells or held_out_starts: the task is distance"},
      {"held-out-starts",
       "task.split",
       {"task.length", "task.max_distance", "task.max_segment"},
       HeldOutStarts,
       "task.split held_out_cells or held_out_starts: a distance has at least 2 start places"},
      {"enough-sequences",
       "task.train_examples",
       {"task.test_examples", "task.vocabulary", "task.length", "task.triggers"},
       EnoughSequences,
       "split disjoint: every class has many more different sequences than examples"},
  };
}

}  // namespace pelab::catalog
