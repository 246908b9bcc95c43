// The interface of a task, which draws examples. Each task has one file in this folder and one row
// in registry.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/random.h"
#include "core/experiment/job.h"

namespace pelab::trainer {

struct Example {
  std::vector<std::int32_t> tokens;  // without padding
  std::int32_t label = 0;
};

// The part of the data set for which an example is drawn. It matters only to a task that holds out
// cells (task.split held_out_cells).
enum class Part { kAny, kTrain, kTest };

// Immutable after construction. `Draw` is a pure function of its arguments.
class Task {
 public:
  virtual ~Task() = default;
  virtual std::int64_t padded_length() const = 0;  // T
  virtual std::int64_t label_min() const = 0;
  virtual std::int64_t label_count() const = 0;
  virtual const std::vector<std::int32_t>& triggers() const = 0;
  // Whether the definition rejects examples that repeat an earlier one (a rejected example is drawn
  // again).
  virtual bool unique_examples() const { return false; }
  virtual Example Draw(CounterRandom random, Part part) const = 0;
};

// Chooses `count` different words in random order, from (data_seed, purpose). Throws
// TrainerError(kBadSpec) unless the vocabulary has more than `count` words.
std::vector<std::int32_t> ChooseWords(std::int64_t data_seed, std::string_view purpose,
                                      std::int64_t vocabulary, std::int64_t count);

// The words that are not in `excluded`, in ascending order.
std::vector<std::int32_t> OtherWords(std::int64_t vocabulary,
                                     const std::vector<std::int32_t>& excluded);

std::unique_ptr<Task> MakeDistanceTask(const experiment::Job& job);
std::unique_ptr<Task> MakeCountingTask(const experiment::Job& job);

}  // namespace pelab::trainer
