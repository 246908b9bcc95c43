#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "worker/trainer/protocol/error.h"
#include "worker/trainer/task/dataset.h"
#include "worker/trainer/task/task.h"

namespace pelab::trainer {

std::vector<std::int32_t> ChooseWords(std::int64_t data_seed, std::string_view purpose,
                                      std::int64_t vocabulary, std::int64_t count) {
  const std::int64_t words = vocabulary - kFirstWordId;
  if (count >= words) {
    throw TrainerError(ErrorKind::kBadSpec,
                       "task.vocabulary " + std::to_string(vocabulary) + " holds " +
                           std::to_string(std::max<std::int64_t>(words, 0)) + " words; " +
                           std::to_string(count) + " triggers and at least one other are needed");
  }
  std::vector<std::int32_t> pool(words);
  for (std::int64_t i = 0; i < words; ++i) pool[i] = static_cast<std::int32_t>(kFirstWordId + i);
  CounterRandom random(static_cast<std::uint64_t>(data_seed), purpose);
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(pool[i], pool[i + random.Below(static_cast<std::uint32_t>(words - i))]);
  }
  pool.resize(count);
  return pool;
}

std::vector<std::int32_t> OtherWords(std::int64_t vocabulary,
                                     const std::vector<std::int32_t>& excluded) {
  std::vector<std::int32_t> words;
  for (std::int32_t id = kFirstWordId; id < vocabulary; ++id) {
    if (std::find(excluded.begin(), excluded.end(), id) == excluded.end()) words.push_back(id);
  }
  return words;
}

}  // namespace pelab::trainer
