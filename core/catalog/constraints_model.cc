// Constraints on the model and the positional encoding. Each check returns "" if the constraint
// holds, or if the job lacks one of the fields that the check reads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>

#include "core/catalog/job_view.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

std::string HeadsDivideWidth(const Values& values) {
  const JobView job(values);
  if (job.Int("model.d_model") % job.Positive("model.heads") == 0) return "";
  return "a multiple of " + job.Named("model.heads");
}

// Whether the PE rotates pairs of channels of every head's queries and keys.
bool RotatesHeads(const JobView& job) {
  const std::string pe = job.pe();
  return pe == "rope" || pe == "xpos" || pe == "partial_rope" || pe == "rope_abs" ||
         (pe == OwnPe().name && job.Lists("pe.methods", "angles"));
}

std::string EvenHeadSize(const Values& values) {
  const JobView job(values);
  const std::int64_t heads = job.Positive("model.heads");
  const std::int64_t width = job.Int("model.d_model");
  // If the heads do not divide the width, another constraint (heads-divide-width) reports it.
  if (!RotatesHeads(job) || width % heads != 0 || width % (2 * heads) == 0) return "";
  return "an even multiple of " + job.Named("model.heads") + ": " + job.pe() +
         " rotates pairs of channels";
}

std::string EvenWidth(const Values& values) {
  const JobView job(values);
  const bool sinusoid = (job.Is("pe", "absolute") && job.Is("pe.form", "sinusoidal")) ||
                        (job.Is("pe", "rope") && job.Bool("pe.input_sinusoid")) ||
                        job.Is("pe", "rope_abs");
  if (!sinusoid || job.Int("model.d_model") % 2 == 0) return "";
  return "even: a sinusoid fills pairs of channels";
}

std::string EvenRotary(const Values& values) {
  if (JobView(values).Int("pe.rotary") % 2 == 0) return "";
  return "even: rotary channels go in pairs; the default is the head size";
}

std::string CausalOnly(const Values& values) {
  const JobView job(values);
  const auto found = values.find("pe");
  if (found == values.end() || job.Is("model.mask", "causal")) return "";
  if (job.Bool("pe.causal_only")) return "causal: the file of the encoding declares causal_only";
  const Entry* pe = FindPe(std::get<std::string>(found->second));
  if (pe == nullptr || pe->causal_because.empty()) return "";
  return "causal: " + std::string(pe->causal_because);
}

std::string ScalesFit(const Values& values) {
  const JobView job(values);
  if (!job.Has("pe.scale_base")) return "";
  // The fastest pair's scale is 3.5^(position / scale_base), which stays below 1e35.
  const std::int64_t least = (job.Int("model.max_len") + 63) / 64;
  if (job.Real("pe.scale_base") >= static_cast<double>(least)) return "";
  return "at least " + std::to_string(least) + ", a 64th of " + job.Named("model.max_len") +
         ": below it the scales leave the range of a 32-bit number";
}

std::string RotatedHeadsExist(const Values& values) {
  return AtMost(JobView(values), "pe.heads", "model.heads");
}

std::string ListedHeadsExist(const Values& values) {
  const JobView job(values);
  const std::vector<std::int64_t> heads = job.Ints("pe.head_list");
  if (heads.empty() || heads.back() < job.Int("model.heads")) return "";
  return "made of heads from 0 to " + std::to_string(job.Int("model.heads") - 1) + ", as " +
         job.Named("model.heads") + " has them";
}

std::string HeadsAreListed(const Values& values) {
  const JobView job(values);
  if (!job.Is("pe.select", "list") || !job.Ints("pe.head_list").empty()) return "";
  return "a list of at least one head: pe.select is list";
}
std::string LengthFitsModel(const Values& values) {
  return AtMost(JobView(values), "task.length", "model.max_len");
}

std::string BucketsSplit(const Values& values) {
  const JobView job(values);
  if (!job.Has("pe.buckets")) return "";
  const std::int64_t part = job.Is("model.mask", "causal") ? 2 : 4;
  if (job.Int("pe.buckets") % part == 0) return "";
  return part == 2
             ? "even: half of the buckets hold one distance each"
             : "a multiple of 4 where model.mask is none: half of them for each direction, half "
               "of those for one distance each";
}

std::string BucketsReach(const Values& values) {
  const JobView job(values);
  if (!job.Has("pe.buckets")) return "";
  const std::int64_t exact = job.Int("pe.buckets") / (job.Is("model.mask", "causal") ? 2 : 4);
  if (job.Int("pe.max_distance") > exact) return "";
  return "above " + std::to_string(exact) + ", the distances with a bucket of their own in " +
         job.Named("pe.buckets");
}

}  // namespace

std::vector<Constraint> ModelConstraints() {
  return {
      {"heads-divide-width",
       "model.d_model",
       {"model.heads"},
       HeadsDivideWidth,
       "model.d_model is a multiple of model.heads"},
      {"even-head-size",
       "model.d_model",
       {"model.heads"},
       EvenHeadSize,
       "rope, xpos, partial_rope, rope_abs, own encodings with angles: model.d_model / "
       "model.heads is even"},
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
      {"causal-only",
       "model.mask",
       {},
       CausalOnly,
       "xpos, own encodings that say so: model.mask is causal"},
      {"heads-exist",
       "pe.heads",
       {"model.heads"},
       RotatedHeadsExist,
       "partial_rope: pe.heads is at most model.heads"},
      {"listed-heads-exist",
       "pe.head_list",
       {"model.heads"},
       ListedHeadsExist,
       "partial_rope: the heads of pe.head_list are below model.heads"},
      {"heads-listed",
       "pe.head_list",
       {"pe.select"},
       HeadsAreListed,
       "partial_rope: pe.select list comes with a pe.head_list"},
      {"even-rotary",
       "pe.rotary",
       {"model.d_model", "model.heads"},
       EvenRotary,
       "mla: pe.rotary is even"},
      {"scales-fit",
       "pe.scale_base",
       {"model.max_len"},
       ScalesFit,
       "xpos: pe.scale_base is at least model.max_len / 64"},
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
}

}  // namespace pelab::catalog
