#include "worker/trainer/task/start_places.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

StartPlaces::StartPlaces(const experiment::Job& job, std::int64_t distances, std::int64_t first,
                         std::int64_t count)
    : first_(static_cast<std::uint32_t>(first)), count_(static_cast<std::uint32_t>(count)) {
  const std::string& split = job.Choice("task.split");
  const bool of_cells = split == "held_out_cells";
  if (!of_cells && split != "held_out_starts") return;
  if (count < 2) {
    throw TrainerError(ErrorKind::kBadSpec,
                       "task.split " + split + ": a distance has " + std::to_string(count) +
                           " start places to share out; at least 2 are needed");
  }
  const double share = job.Real("task.held_out_fraction") * static_cast<double>(count);
  held_out_ = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(share + 0.5)), 1, count - 1));
  for (std::int64_t stream = of_cells ? 1 : 0; stream <= (of_cells ? distances : 0); ++stream) {
    std::vector<std::uint32_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), first_);
    CounterRandom random(static_cast<std::uint64_t>(job.Int("task.data_seed")), "distance/held_out",
                         static_cast<std::uint64_t>(stream));
    for (std::uint32_t i = 0; i < held_out_; ++i) {
      std::swap(places[i], places[i + random.Below(count_ - i)]);
    }
    order_.push_back(std::move(places));
  }
}

std::uint32_t StartPlaces::Draw(Part part, std::uint32_t distance, CounterRandom* random) const {
  if (held_out_ == 0 || part == Part::kAny) return first_ + random->Below(count_);
  const auto& places = order_.size() == 1 ? order_.front() : order_[distance - 1];
  if (part == Part::kTest) return places[random->Below(held_out_)];
  return places[held_out_ + random->Below(count_ - held_out_)];
}

}  // namespace pelab::trainer
