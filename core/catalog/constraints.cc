// Rules over several fields. Each check answers "" when it holds or when the job lacks one of its
// fields.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/catalog/catalog.h"

namespace pelab::catalog {
namespace {

// The job's values by field, with zero and "" for what it lacks.
class View {
 public:
  explicit View(const Values& values) : values_(values) {}

  bool Has(std::string_view field) const { return values_.find(field) != values_.end(); }
  std::int64_t Int(std::string_view field) const { return Get<std::int64_t>(field); }
  // For divisors: fields whose range starts at 1 are never less, and this holds where one were.
  std::int64_t Positive(std::string_view field) const {
    return std::max<std::int64_t>(1, Int(field));
  }
  double Real(std::string_view field) const { return Get<double>(field); }
  bool Bool(std::string_view field) const { return Get<bool>(field); }
  bool Is(std::string_view field, std::string_view choice) const {
    return Get<std::string>(field) == choice;
  }
  // "task.length (128)"
  std::string Named(std::string_view field) const {
    return std::string(field) + " (" + std::to_string(Int(field)) + ")";
  }

 private:
  template <typename T>
  T Get(std::string_view field) const {
    const auto found = values_.find(field);
    if (found == values_.end()) return T();
    const auto* value = std::get_if<T>(&found->second);
    return value == nullptr ? T() : *value;
  }

  const Values& values_;
};

std::string AtMost(const View& job, std::string_view field, std::string_view bound) {
  if (!job.Has(field) || !job.Has(bound) || job.Int(field) <= job.Int(bound)) return "";
  return "at most " + job.Named(bound);
}

std::string HeadsDivideWidth(const Values& values) {
  const View job(values);
  if (job.Int("model.d_model") % job.Positive("model.heads") == 0) return "";
  return "a multiple of " + job.Named("model.heads");
}

std::string EvenHeadSize(const Values& values) {
  const View job(values);
  const std::int64_t heads = job.Positive("model.heads");
  const std::int64_t width = job.Int("model.d_model");
  // Where the heads do not divide the width, that is told instead.
  if (!job.Is("pe", "rope") || width % heads != 0 || width % (2 * heads) == 0) return "";
  return "an even multiple of " + job.Named("model.heads") + ": rope turns pairs of channels";
}

std::string EvenWidth(const Values& values) {
  const View job(values);
  const bool sinusoid = (job.Is("pe", "absolute") && job.Is("pe.form", "sinusoidal")) ||
                        (job.Is("pe", "rope") && job.Bool("pe.input_sinusoid"));
  if (!sinusoid || job.Int("model.d_model") % 2 == 0) return "";
  return "even: a sinusoid fills pairs of channels";
}

std::string LengthFitsModel(const Values& values) {
  return AtMost(View(values), "task.length", "model.max_len");
}

std::string DistanceFits(const Values& values) {
  const View job(values);
  if (!job.Has("task.max_distance") || job.Int("task.length") > job.Int("task.max_distance"))
    return "";
  return "at least " + std::to_string(job.Int("task.max_distance") + 1) +
         ": the sequence is too short for two triggers " + job.Named("task.max_distance") +
         " apart";
}

std::string TruncateFits(const Values& values) {
  return AtMost(View(values), "task.truncate", "task.length");
}

std::string ContentFits(const Values& values) {
  return AtMost(View(values), "task.content_length", "task.length");
}

std::string TriggersSurviveTruncation(const Values& values) {
  const View job(values);
  if (!job.Has("task.truncate")) return "";
  const std::int64_t needed = job.Int("task.max_segment") + job.Int("task.max_gap") + 2;
  if (job.Int("task.truncate") >= needed) return "";
  return "at least " + std::to_string(needed) + ", which is " + job.Named("task.max_segment") +
         " plus " + job.Named("task.max_gap") + " plus the 2 triggers: the sequence is too short";
}

std::string CountFits(const Values& values) {
  const View job(values);
  return AtMost(job, "task.max_count",
                job.Has("task.content_length") ? "task.content_length" : "task.length");
}

std::string TriggersFitVocabulary(const Values& values) {
  const View job(values);
  const std::int64_t needed = kFirstWord + job.Int("task.triggers") + 1;
  if (!job.Has("task.triggers") || job.Int("task.vocabulary") >= needed) return "";
  return "at least " + std::to_string(needed) + ": " + std::to_string(kFirstWord) +
         " ids that are no words, " + job.Named("task.triggers") + " and one other word";
}

std::string SegmentsFitVocabulary(const Values& values) {
  const View job(values);
  const std::int64_t longest = std::max(job.Int("task.max_segment"), job.Int("task.max_gap"));
  if (!job.Has("task.max_gap") || job.Int("task.vocabulary") - kFirstWord >= longest) return "";
  return "at least " + std::to_string(kFirstWord + longest) + ": " + std::to_string(kFirstWord) +
         " ids that are no words and " + std::to_string(longest) +
         " different words for the longest segment";
}

std::int64_t LargestLabel(const View& job) {
  if (job.Is("task", "counting")) return job.Int("task.max_count");
  return job.Has("task.max_gap") ? job.Int("task.max_gap") + 1 : job.Int("task.max_distance");
}

std::string LabelsFitVocabulary(const Values& values) {
  const View job(values);
  const std::int64_t largest = LargestLabel(job);
  if (!job.Is("task.label_space", "vocabulary") || largest < job.Int("task.vocabulary")) return "";
  return "at least " + std::to_string(largest + 1) +
         ": task.label_space vocabulary needs an id for the largest label, " +
         std::to_string(largest);
}

// How many different sequences the rarest class has, as a logarithm, and how many classes there
// are. The logarithm is not a number where another constraint already fails.
struct Rarest {
  double log_sequences;
  std::int64_t classes;
};

// ln of n(n-1)…(n-k+1); std::lgamma would write a global.
double LogFalling(std::int64_t n, std::int64_t k) {
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += std::log(static_cast<double>(n - i));
  return sum;
}

Rarest RarestDistance(const View& job) {
  const std::int64_t words = job.Int("task.vocabulary") - kFirstWord;
  const std::int64_t length = job.Int("task.length");
  if (job.Has("task.max_distance")) {
    const std::int64_t starts = length - job.Int("task.max_distance");
    const double fillers =
        static_cast<double>(length - 2) * std::log(static_cast<double>(words - 2));
    return {starts < 1 ? NAN : std::log(static_cast<double>(starts)) + fillers,
            job.Int("task.max_distance")};
  }
  // A gap of one word between two segments, each a choice without replacement.
  const std::int64_t segment = job.Int("task.max_segment");
  if (segment > words) return {NAN, 1};
  return {std::log(static_cast<double>(words)) + 2 * LogFalling(words, segment),
          job.Int("task.max_gap")};
}

Rarest RarestCount(const View& job) {
  const std::int64_t length =
      job.Int(job.Has("task.content_length") ? "task.content_length" : "task.length");
  const std::int64_t triggers = job.Int("task.triggers");
  const std::int64_t others = job.Int("task.vocabulary") - kFirstWord - triggers;
  const std::int64_t most = job.Int("task.max_count");
  if (others < 1 || most > length) return {NAN, 1};
  // Choices of places times choices of words: log-concave in the count, so the least is at an end.
  const double log_others = std::log(static_cast<double>(others));
  const double none = static_cast<double>(length) * log_others;
  const double all = LogFalling(length, most) - LogFalling(most, most) +
                     static_cast<double>(most) * std::log(static_cast<double>(triggers)) +
                     static_cast<double>(length - most) * log_others;
  return {std::min(none, all), most + 1};
}

std::string EnoughSequences(const Values& values) {
  const View job(values);
  if (!job.Is("task.split", "disjoint")) return "";
  const Rarest rarest = job.Is("task", "counting") ? RarestCount(job) : RarestDistance(job);
  constexpr double kSpare =
      10;  // sequences for each one that is drawn, so that drawing anew stays rare
  const double bound =
      std::exp(rarest.log_sequences) / kSpare * static_cast<double>(rarest.classes) -
      static_cast<double>(job.Int("task.test_examples"));
  if (std::isnan(bound) || static_cast<double>(job.Int("task.train_examples")) <= bound) return "";
  return "at most " + NumberToText(std::floor(std::max(0.0, bound))) + " beside " +
         job.Named("task.test_examples") +
         ": the rarest class has too few different sequences for training and test sets that share "
         "none";
}

std::string DataFits(const Values& values) {
  const View job(values);
  const std::int64_t limit = kMaxDataBytes / 4 / job.Positive("task.length");
  if (job.Int("task.train_examples") + job.Int("task.test_examples") <= limit) return "";
  return "at most " + std::to_string(limit) + " together with task.test_examples (" +
         std::to_string(job.Int("task.test_examples")) + "): the data set may take " +
         std::to_string(kMaxDataBytes >> 30) + " GiB at " + job.Named("task.length") +
         " of 4 bytes";
}

// An upper estimate; every factor is bounded by its field's range, so nothing overflows.
std::int64_t Parameters(const View& job) {
  const std::int64_t d = job.Int("model.d_model");
  const std::int64_t layers = job.Int("model.layers");
  const std::int64_t vocabulary = job.Int("task.vocabulary");
  const std::int64_t max_len = job.Int("model.max_len");
  return layers *
             (4 * d * d + 2 * d * job.Int("model.d_ff") + 2 * max_len * job.Int("model.heads")) +
         d * (2 * vocabulary + max_len);
}

std::string StateFits(const Values& values) {
  const View job(values);
  const std::int64_t limit = kMaxStateBytes / 16;
  const std::int64_t parameters = Parameters(job);
  if (parameters <= limit) return "";
  return "smaller: with " + job.Named("model.layers") + ", " + job.Named("model.d_ff") + " and " +
         job.Named("task.vocabulary") + " the model has about " + std::to_string(parameters) +
         " parameters; the limit is " + std::to_string(limit);
}

std::string StepFits(const Values& values) {
  const View job(values);
  const std::int64_t length = job.Int("task.length");
  const std::int64_t per_token =
      4 * job.Positive("model.layers") *
      (2 * job.Positive("model.heads") * length + 8 * job.Positive("model.d_model") +
       2 * job.Positive("model.d_ff"));
  const std::int64_t limit = kMaxStepBytes / length / per_token;
  if (job.Int("train.batch_size") <= limit) return "";
  return "at most " + std::to_string(limit) + ": a step of this model on " +
         job.Named("task.length") + " may keep " + std::to_string(kMaxStepBytes >> 30) +
         " GiB of activations";
}

std::string BucketsSplit(const Values& values) {
  const View job(values);
  if (!job.Has("pe.buckets")) return "";
  const std::int64_t part = job.Is("model.mask", "causal") ? 2 : 4;
  if (job.Int("pe.buckets") % part == 0) return "";
  return part == 2
             ? "even: half of the buckets hold one distance each"
             : "a multiple of 4 where model.mask is none: half of them for each direction, half "
               "of those for one distance each";
}

std::string BucketsReach(const Values& values) {
  const View job(values);
  if (!job.Has("pe.buckets")) return "";
  const std::int64_t exact = job.Int("pe.buckets") / (job.Is("model.mask", "causal") ? 2 : 4);
  if (job.Int("pe.max_distance") > exact) return "";
  return "above " + std::to_string(exact) + ", the distances with a bucket of their own in " +
         job.Named("pe.buckets");
}

}  // namespace

const std::vector<Constraint>& Constraints() {
  static const std::vector<Constraint> constraints = {
      {"heads-divide-width",
       "model.d_model",
       {"model.heads"},
       HeadsDivideWidth,
       "model.d_model is a multiple of model.heads"},
      {"even-head-size",
       "model.d_model",
       {"model.heads"},
       EvenHeadSize,
       "rope: model.d_model / model.heads is even"},
      {"even-width",
       "model.d_model",
       {"pe.form", "pe.input_sinusoid"},
       EvenWidth,
       "a sinusoid at the input needs an even model.d_model"},
      {"length-fits-model",
       "task.length",
       {"model.max_len"},
       LengthFitsModel,
       "task.length is at most model.max_len"},
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
      {"enough-sequences",
       "task.train_examples",
       {"task.test_examples", "task.vocabulary", "task.length", "task.triggers"},
       EnoughSequences,
       "split disjoint: every class has many more different sequences than examples"},
      {"data-fits",
       "task.train_examples",
       {"task.test_examples", "task.length"},
       DataFits,
       "the data set takes at most 64 GiB"},
      {"state-fits",
       "model.d_model",
       {"model.layers", "model.d_ff", "task.vocabulary"},
       StateFits,
       "weights, gradients and moments take at most 64 GiB"},
      {"step-fits",
       "train.batch_size",
       {"task.length", "model.layers", "model.heads", "model.d_model", "model.d_ff"},
       StepFits,
       "the activations of a training step take at most 1 TiB"},
      {"buckets-split",
       "pe.buckets",
       {"model.mask"},
       BucketsSplit,
       "relative: pe.buckets is even, a multiple of 4 without a causal mask"},
      {"buckets-reach",
       "pe.max_distance",
       {"pe.buckets"},
       BucketsReach,
       "relative: pe.max_distance is above the buckets that hold one distance each"},
  };
  return constraints;
}

}  // namespace pelab::catalog
