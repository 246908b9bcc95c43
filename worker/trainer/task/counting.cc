// Task 2: how many tokens of a sequence belong to a fixed set of trigger words?
//
// In both definitions the count c is uniform in 0 … max_count. Then c triggers are drawn with
// replacement from the set, and the fillers with replacement from the other words. All sets of
// places for the triggers are equally likely. The label is c. `clean` fills all T tokens;
// `published` (arXiv 2505.13027) fills `content_length` tokens and pads the rest.
#include <cstdint>
#include <string>

#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {
namespace {

class Counting : public Task {
 public:
  explicit Counting(const experiment::Job& job)
      : length_(job.Int("task.length")), max_count_(job.Int("task.max_count")) {
    content_ = job.Choice("task.definition") == "clean" ? length_ : job.Int("task.content_length");
    if (content_ > length_) {
      throw TrainerError(ErrorKind::kBadSpec, "task.content_length " + std::to_string(content_) +
                                                  " is longer than task.length " +
                                                  std::to_string(length_));
    }
    if (max_count_ > content_) {
      throw TrainerError(ErrorKind::kBadSpec, "task.max_count " + std::to_string(max_count_) +
                                                  " does not fit " + std::to_string(content_) +
                                                  " tokens");
    }
    const std::string& split = job.Choice("task.split");
    if (split != "disjoint" && split != "random") {
      throw TrainerError(ErrorKind::kBadSpec, "task.split " + split +
                                                  ": counting has no start places; allowed: "
                                                  "disjoint, random");
    }
    triggers_ = ChooseWords(job.Int("task.data_seed"), "counting/triggers",
                            job.Int("task.vocabulary"), job.Int("task.triggers"));
    fillers_ = OtherWords(job.Int("task.vocabulary"), triggers_);
  }
  std::int64_t padded_length() const override { return length_; }
  std::int64_t label_min() const override { return 0; }
  std::int64_t label_count() const override { return max_count_ + 1; }
  const std::vector<std::int32_t>& triggers() const override { return triggers_; }

  Example Draw(CounterRandom random, Part /*part*/) const override {
    const auto count = random.Below(static_cast<std::uint32_t>(max_count_ + 1));
    Example example;
    example.label = static_cast<std::int32_t>(count);
    example.tokens.resize(content_);
    // Selection sampling (Knuth, TAOCP 3.4.2, algorithm S): every set of `count` places is equally
    // likely.
    std::uint32_t wanted = count;
    for (std::int64_t t = 0; t < content_; ++t) {
      const bool trigger = random.Below(static_cast<std::uint32_t>(content_ - t)) < wanted;
      const auto& pool = trigger ? triggers_ : fillers_;
      example.tokens[t] = pool[random.Below(static_cast<std::uint32_t>(pool.size()))];
      wanted -= trigger ? 1 : 0;
    }
    return example;
  }

 private:
  std::int64_t length_;
  std::int64_t max_count_;
  std::int64_t content_;
  std::vector<std::int32_t> triggers_;
  std::vector<std::int32_t> fillers_;
};

}  // namespace

std::unique_ptr<Task> MakeCountingTask(const experiment::Job& job) {
  return std::make_unique<Counting>(job);
}

}  // namespace pelab::trainer
