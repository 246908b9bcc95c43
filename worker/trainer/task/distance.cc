// Task 1: how far apart are two marked words? (shared definitions: docs/formats.md)
//
// `clean`: T tokens without padding. The distance Δ is uniform in 1 … D. The start is uniform in 0
// … T-1-D and independent of Δ. Fillers are drawn with replacement from the words that are not
// triggers. The label is Δ-1. Neither the length nor the place of the first trigger says anything
// about Δ, and every example can be solved.
//
// `published` (arXiv 2505.13027, the authors' generator): the lengths of the left and right
// segments are uniform in 1 … max_segment, the gap M is uniform in 1 … max_gap. Each segment is
// drawn without replacement from all words, including the triggers, so some examples are ambiguous.
// The label is M+1. Sequences are truncated, then padded to task.length. Examples that repeat an
// earlier one are drawn again.
//
// With task.split held_out_cells, the pairs of a distance (or gap) and a place of the first trigger
// are divided between training and test set (see start_places.h). The labels stay uniform in both.
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/task/start_places.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {
namespace {

class CleanDistance : public Task {
 public:
  explicit CleanDistance(const experiment::Job& job)
      : length_(job.Int("task.length")), max_distance_(job.Int("task.max_distance")) {
    if (max_distance_ < 1 || max_distance_ > length_ - 1) {
      throw TrainerError(ErrorKind::kBadSpec,
                         "task.max_distance " + std::to_string(max_distance_) +
                             " does not fit a sequence of " + std::to_string(length_) +
                             " tokens; allowed: 1 to " + std::to_string(length_ - 1));
    }
    triggers_ =
        ChooseWords(job.Int("task.data_seed"), "distance/triggers", job.Int("task.vocabulary"), 2);
    fillers_ = OtherWords(job.Int("task.vocabulary"), triggers_);
    starts_ = StartPlaces(job, max_distance_, 0, length_ - max_distance_);
  }
  std::int64_t padded_length() const override { return length_; }
  std::int64_t label_min() const override { return 0; }
  std::int64_t label_count() const override { return max_distance_; }
  const std::vector<std::int32_t>& triggers() const override { return triggers_; }

  Example Draw(CounterRandom random, Part part) const override {
    const auto distance = 1 + random.Below(static_cast<std::uint32_t>(max_distance_));
    const auto start = starts_.Draw(part, distance, &random);
    Example example;
    example.tokens.resize(length_);
    for (auto& token : example.tokens) {
      token = fillers_[random.Below(static_cast<std::uint32_t>(fillers_.size()))];
    }
    example.tokens[start] = triggers_[0];
    example.tokens[start + distance] = triggers_[1];
    example.label = static_cast<std::int32_t>(distance - 1);
    return example;
  }

 private:
  std::int64_t length_;
  std::int64_t max_distance_;
  std::vector<std::int32_t> triggers_;
  std::vector<std::int32_t> fillers_;
  StartPlaces starts_;
};

class PublishedDistance : public Task {
 public:
  explicit PublishedDistance(const experiment::Job& job)
      : length_(job.Int("task.length")),
        max_segment_(job.Int("task.max_segment")),
        max_gap_(job.Int("task.max_gap")),
        truncate_(job.Int("task.truncate")) {
    const std::int64_t vocabulary = job.Int("task.vocabulary");
    triggers_ = ChooseWords(job.Int("task.data_seed"), "distance/triggers", vocabulary, 2);
    words_ = OtherWords(vocabulary, {});
    lefts_ = StartPlaces(job, max_gap_, 1, max_segment_);
    const auto longest = std::max(max_segment_, max_gap_);
    if (longest > static_cast<std::int64_t>(words_.size())) {
      throw TrainerError(ErrorKind::kBadSpec,
                         "a segment of " + std::to_string(longest) +
                             " different words cannot be drawn from task.vocabulary " +
                             std::to_string(vocabulary) + " with its " +
                             std::to_string(words_.size()) + " words");
    }
    if (truncate_ > length_) {
      throw TrainerError(ErrorKind::kBadSpec, "task.truncate " + std::to_string(truncate_) +
                                                  " is longer than task.length " +
                                                  std::to_string(length_));
    }
  }
  std::int64_t padded_length() const override { return length_; }
  std::int64_t label_min() const override { return 2; }
  std::int64_t label_count() const override { return max_gap_; }
  const std::vector<std::int32_t>& triggers() const override { return triggers_; }
  bool unique_examples() const override { return true; }

  Example Draw(CounterRandom random, Part part) const override {
    const auto gap = 1 + random.Below(static_cast<std::uint32_t>(max_gap_));
    const auto left = lefts_.Draw(part, gap, &random);
    const auto right = 1 + random.Below(static_cast<std::uint32_t>(max_segment_));
    Example example;
    AppendDistinct(left, &random, &example.tokens);
    example.tokens.push_back(triggers_[0]);
    AppendDistinct(gap, &random, &example.tokens);
    example.tokens.push_back(triggers_[1]);
    AppendDistinct(right, &random, &example.tokens);
    if (static_cast<std::int64_t>(example.tokens.size()) > truncate_) {
      example.tokens.resize(truncate_);
    }
    example.label = static_cast<std::int32_t>(gap + 1);
    return example;
  }

 private:
  // Appends `count` different words: the first steps of a Fisher-Yates shuffle on a copy of the
  // words.
  void AppendDistinct(std::uint32_t count, CounterRandom* random,
                      std::vector<std::int32_t>* tokens) const {
    std::vector<std::int32_t> pool = words_;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto left = static_cast<std::uint32_t>(pool.size()) - i;
      std::swap(pool[i], pool[i + random->Below(left)]);
      tokens->push_back(pool[i]);
    }
  }

  std::int64_t length_;
  std::int64_t max_segment_;
  std::int64_t max_gap_;
  std::int64_t truncate_;
  std::vector<std::int32_t> triggers_;
  std::vector<std::int32_t> words_;
  StartPlaces lefts_;
};

}  // namespace

std::unique_ptr<Task> MakeDistanceTask(const experiment::Job& job) {
  if (job.Choice("task.definition") == "clean") return std::make_unique<CleanDistance>(job);
  return std::make_unique<PublishedDistance>(job);
}

}  // namespace pelab::trainer
