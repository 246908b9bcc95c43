#include "worker/trainer/task/dataset.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/safetensors/task_file.h"
#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/own_data.h"
#include "worker/trainer/task/registry.h"

namespace pelab::trainer {
namespace {

using HashSet = std::unordered_set<std::uint64_t>;

std::uint64_t HashOf(const std::vector<std::int32_t>& tokens) {
  std::uint64_t hash = Mix64(tokens.size() + 1);
  for (const std::int32_t token : tokens) {
    hash = Mix64(hash ^ static_cast<std::uint64_t>(token)) + 0x9E3779B97F4A7C15;
  }
  return hash;
}

class Generator {
 public:
  Generator(const Task& task, std::int64_t data_seed, Dataset* data)
      : task_(task), seed_(static_cast<std::uint64_t>(data_seed)), data_(data) {}

  // Appends `count` examples of `purpose`, drawn for `part`. If the hash of an example is in
  // `taken`, the example is drawn again from the next stream of the same index. With `keep_unique`,
  // every accepted hash is added to `taken`.
  void Append(std::string_view purpose, Part part, std::int64_t count, HashSet* taken,
              bool keep_unique) {
    for (std::int64_t i = 0; i < count; ++i) {
      Example example;
      std::uint64_t hash = 0;
      std::uint64_t draw = 0;
      do {
        if (draw == limits::kDraws) ThrowCrowded(purpose, i);
        example = task_.Draw(
            CounterRandom(seed_, purpose, (draw << 40) + static_cast<std::uint64_t>(i)), part);
        hash = HashOf(example.tokens);
        ++draw;
      } while (taken != nullptr && taken->count(hash) != 0);
      if (keep_unique) taken->insert(hash);
      Store(std::move(example));
    }
  }

 private:
  [[noreturn]] void ThrowCrowded(std::string_view purpose, std::int64_t index) const {
    throw TrainerError(ErrorKind::kBadSpec,
                       "no new sequence found for example " + std::to_string(index) + " of " +
                           std::string(purpose) + " in " + std::to_string(limits::kDraws) +
                           " draws: the task has too few different sequences; allow fewer examples "
                           "or a larger task.length or task.vocabulary");
  }

  void Store(Example example) {
    data_->lengths.push_back(static_cast<std::int32_t>(example.tokens.size()));
    data_->labels.push_back(example.label);
    example.tokens.resize(data_->length, kPadId);
    data_->tokens.insert(data_->tokens.end(), example.tokens.begin(), example.tokens.end());
  }

  const Task& task_;
  std::uint64_t seed_;
  Dataset* data_;
};

// Splits one pool of examples like PyTorch's random_split: by one permutation, from the seed that
// the authors fixed. The permutation does not depend on data_seed.
constexpr std::uint64_t kSplitSeed = 42;

void Shuffle(Dataset* data) {
  std::vector<std::int64_t> order(data->size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  CounterRandom random(kSplitSeed, "data/split");
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(static_cast<std::uint32_t>(i))]);
  }
  const Dataset from = *data;
  for (std::size_t i = 0; i < order.size(); ++i) {
    data->lengths[i] = from.lengths[order[i]];
    data->labels[i] = from.labels[order[i]];
    std::copy_n(from.tokens.begin() + order[i] * from.length, from.length,
                data->tokens.begin() + static_cast<std::int64_t>(i) * from.length);
  }
}

Dataset Generate(const experiment::Job& job) {
  const auto task = MakeTask(job);
  Dataset data;
  data.length = task->padded_length();
  data.train_examples = job.Int("task.train_examples");
  data.label_min = task->label_min();
  data.label_count = task->label_count();
  data.triggers = task->triggers();
  const std::int64_t test_examples = job.Int("task.test_examples");
  // The splits that hold out start places separate the sequences, too.
  const bool disjoint = job.Choice("task.split") != "random";
  const bool unique = task->unique_examples();
  Generator generator(*task, job.Int("task.data_seed"), &data);
  HashSet taken;
  if (disjoint) {
    // The training set may repeat examples unless the definition forbids it. The test set contains
    // no example of the training set.
    if (unique) {
      generator.Append("data/train", Part::kTrain, data.train_examples, &taken, true);
      generator.Append("data/test", Part::kTest, test_examples, &taken, true);
    } else {
      generator.Append("data/train", Part::kTrain, data.train_examples, nullptr, false);
      for (std::int64_t i = 0; i < data.train_examples; ++i) {
        const auto* row = data.tokens.data() + i * data.length;
        taken.insert(HashOf({row, row + data.lengths[i]}));
      }
      generator.Append("data/test", Part::kTest, test_examples, &taken, false);
    }
  } else {
    generator.Append("data/pool", Part::kAny, data.train_examples + test_examples,
                     unique ? &taken : nullptr, unique);
    Shuffle(&data);
  }
  return data;
}

void AppendBytes(const std::vector<std::int32_t>& values, Sha256* hash) {
  std::vector<unsigned char> bytes(values.size() * 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<std::uint32_t>(values[i]);
    for (int b = 0; b < 4; ++b) bytes[i * 4 + b] = static_cast<unsigned char>(value >> (8 * b));
  }
  hash->Update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void AppendBytes(std::int64_t value, Sha256* hash) {
  unsigned char bytes[8];
  for (int b = 0; b < 8; ++b)
    bytes[b] = static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * b));
  hash->Update({reinterpret_cast<const char*>(bytes), sizeof bytes});
}

}  // namespace

bool Dataset::HasPadding() const {
  return std::any_of(lengths.begin(), lengths.end(), [&](std::int32_t n) { return n != length; });
}

Dataset MakeDataset(const experiment::Job& job) {
  if (job.Int("task.length") > job.Int("model.max_len")) {
    throw TrainerError(ErrorKind::kBadSpec,
                       "task.length " + std::to_string(job.Int("task.length")) +
                           " exceeds model.max_len " + std::to_string(job.Int("model.max_len")));
  }
  return job.task == catalog::OwnTask().name ? ReadOwnData(job) : Generate(job);
}

LabelSpace LabelSpaceOf(const experiment::Job& job, const Dataset& data) {
  LabelSpace space;
  space.score_zero = job.Choice("task.scored_classes") == "all";
  if (job.Choice("task.label_space") == "exact") {
    space.classes = data.label_count;
    space.offset = data.label_min;
    return space;
  }
  space.classes = job.Int("task.vocabulary");
  const std::int64_t largest = data.label_min + data.label_count - 1;
  if (largest >= space.classes) {
    throw TrainerError(ErrorKind::kBadSpec,
                       "label " + std::to_string(largest) + " has no class among the " +
                           std::to_string(space.classes) + " of task.label_space vocabulary");
  }
  return space;
}

std::vector<std::int32_t> TargetsInFile(const Dataset& data) {
  std::vector<std::int32_t> targets = data.labels;
  if (data.by_position) std::replace(targets.begin(), targets.end(), kNoTarget, std::int32_t{-1});
  return targets;
}

std::string DatasetSha256(const Dataset& data) {
  Sha256 hash;
  AppendBytes(data.length, &hash);
  AppendBytes(data.train_examples, &hash);
  AppendBytes(data.tokens, &hash);
  AppendBytes(data.lengths, &hash);
  AppendBytes(TargetsInFile(data), &hash);
  return hash.FinishHex();
}

}  // namespace pelab::trainer
