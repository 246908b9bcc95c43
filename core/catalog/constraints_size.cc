// Limits on what one job may ask of a machine. These are upper estimates, so that no document can
// make a program allocate without bound. Every factor is bounded by its field's range, so no
// product overflows.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/catalog/job_view.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

std::string DataFits(const Values& values) {
  const JobView job(values);
  const std::int64_t limit = kMaxDataBytes / 4 / job.Positive("task.length");
  if (job.Int("task.train_examples") + job.Int("task.test_examples") <= limit) return "";
  return "at most " + std::to_string(limit) + " together with task.test_examples (" +
         std::to_string(job.Int("task.test_examples")) + "): the data set may take " +
         std::to_string(kMaxDataBytes >> 30) + " GiB at " + job.Named("task.length") +
         " of 4 bytes";
}

// The number of weights in a layer's projections.
std::int64_t ProjectionParameters(const JobView& job) {
  const std::int64_t d = job.Int("model.d_model");
  if (!job.Is("pe", "mla")) return 4 * d * d;
  const std::int64_t latent = job.Int("pe.latent");
  const std::int64_t rotary = job.Int("pe.rotary");
  const std::int64_t queries = job.Is("pe.rotary_query", "shared") ? 1 : job.Int("model.heads");
  return d * d + 5 * d * latent + rotary * d + queries * rotary * latent + 2 * latent;
}

// The number of weights in a layer's tables of distances, for any PE.
std::int64_t TableParameters(const JobView& job) {
  if (!job.Is("pe", "shaw")) return 2 * job.Int("model.max_len") * job.Int("model.heads");
  const std::int64_t rows = 2 * job.Int("pe.max_distance") + 1;
  const std::int64_t tables = job.Bool("pe.values") ? 2 : 1;
  return tables * rows * (job.Int("model.d_model") / job.Positive("model.heads"));
}

std::int64_t Parameters(const JobView& job) {
  const std::int64_t d = job.Int("model.d_model");
  const std::int64_t per_layer =
      ProjectionParameters(job) + 2 * d * job.Int("model.d_ff") + TableParameters(job);
  return job.Int("model.layers") * per_layer +
         d * (2 * job.Int("task.vocabulary") + job.Int("model.max_len"));
}
std::string StateFits(const Values& values) {
  const JobView job(values);
  const std::int64_t limit = kMaxStateBytes / 16;
  const std::int64_t parameters = Parameters(job);
  if (parameters <= limit) return "";
  return "smaller: with " + job.Named("model.layers") + ", " + job.Named("model.d_ff") + " and " +
         job.Named("task.vocabulary") + " the model has about " + std::to_string(parameters) +
         " parameters; the limit is " + std::to_string(limit);
}

// How many values a layer of this PE keeps for one token, beyond the values that every PE keeps.
std::int64_t ExtraPerToken(const JobView& job) {
  const std::int64_t heads = job.Positive("model.heads");
  const std::int64_t length = job.Int("task.length");
  // Logits for every distance, and the logits selected for every key.
  if (job.Is("pe", "shaw")) {
    const std::int64_t one = heads * (2 * job.Int("pe.max_distance") + 1 + length);
    return job.Bool("pe.values") ? 2 * one : one;
  }
  // Rotary logits, latents and their norms, rotary queries and keys.
  if (job.Is("pe", "mla")) {
    return heads * length + 4 * job.Int("pe.latent") + 2 * (heads + 1) * job.Int("pe.rotary");
  }
  return 0;
}

std::string StepFits(const Values& values) {
  const JobView job(values);
  const std::int64_t length = job.Int("task.length");
  const std::int64_t per_token =
      4 * job.Positive("model.layers") *
      (2 * job.Positive("model.heads") * length + 8 * job.Positive("model.d_model") +
       2 * job.Positive("model.d_ff") + ExtraPerToken(job));
  const std::int64_t limit = kMaxStepBytes / length / per_token;
  if (job.Int("train.batch_size") <= limit) return "";
  return "at most " + std::to_string(limit) + ": a step of this model on " +
         job.Named("task.length") + " may keep " + std::to_string(kMaxStepBytes >> 30) +
         " GiB of activations";
}
}  // namespace

std::vector<Constraint> SizeConstraints() {
  return {
      {"data-fits",
       "task.train_examples",
       {"task.test_examples", "task.length"},
       DataFits,
       "the data set takes at most 64 GiB"},
      {"state-fits",
       "model.d_model",
       {"model.layers", "model.d_ff", "task.vocabulary", "pe.latent", "pe.rotary",
        "pe.max_distance"},
       StateFits,
       "weights, gradients and moments take at most 64 GiB"},
      {"step-fits",
       "train.batch_size",
       {"task.length", "model.layers", "model.heads", "model.d_model", "model.d_ff",
        "pe.max_distance", "pe.latent", "pe.rotary"},
       StepFits,
       "the activations of a training step take at most 1 TiB"},
  };
}

}  // namespace pelab::catalog
