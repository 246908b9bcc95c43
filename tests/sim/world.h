// Time, chance and the order of events in a simulation. Everything that happens is an event on one
// virtual clock in one thread, and every random draw comes from one seed. So a seed determines a
// history. For one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/random.h"

namespace pelab::sim {

// A sequence of random draws.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(Mix64(seed) | 1) {}

  std::uint64_t Draw(std::uint64_t below) {  // uniform in [0, below)
    random_ += 0x9E3779B97F4A7C15;
    return Mix64(random_) % below;
  }
  double Unit() { return static_cast<double>(Draw(1 << 30)) / (1 << 30); }
  bool Chance(double probability) { return Unit() < probability; }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + (high - low) * Unit();
  }
  template <typename T>
  const T& OneOf(const std::vector<T>& of) {
    return of[Draw(of.size())];
  }

 private:
  std::uint64_t random_;
};

class World final : public Clock, public Dice {
 public:
  explicit World(std::uint64_t seed, bool print) : Dice(seed), seed_(seed), print_(print) {}

  // Draws for one purpose. They follow from the seed and disturb no other draws, so a part of a
  // history that is left out changes nothing else.
  Dice DiceFor(std::string_view purpose) const { return Dice(Mix64(seed_) ^ PurposeId(purpose)); }

  absl::Duration Monotonic() const override { return absl::Microseconds(now_); }
  absl::Time Wall() const override {
    return absl::FromUnixSeconds(1'700'000'000) + Monotonic() + wall_jump_;
  }
  void SetWallJump(absl::Duration jump) { wall_jump_ = jump; }

  // Runs `event` at that time. Events for the same time run in the order of their calls to At.
  void At(absl::Duration when, std::function<void()> event);
  void After(absl::Duration delay, std::function<void()> event) {
    At(Monotonic() + delay, std::move(event));
  }
  // Runs the next event; false if there is none.
  bool Step();

  // Adds a line to the history: it goes into the hash, and is printed if printing is on.
  template <typename... Args>
  void Note(const Args&... args) {
    const std::string line = absl::StrCat(args...);
    hash_ = Mix64(hash_ ^ PurposeId(line) ^ static_cast<std::uint64_t>(now_));
    if (print_) Print(line);
  }
  std::uint64_t hash() const { return hash_; }

  // Records a violation of a promise. Only the first is kept.
  void Violate(std::string what);
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  struct Event {
    std::int64_t when = 0;  // microseconds
    std::uint64_t number = 0;
    std::function<void()> run;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };
  void Print(const std::string& line) const;

  std::int64_t now_ = std::int64_t{1000} * 1'000'000;
  absl::Duration wall_jump_;
  std::vector<Event> events_;  // a heap, the earliest first
  std::uint64_t numbers_ = 0;
  const std::uint64_t seed_;
  std::uint64_t hash_ = 0;
  bool print_;
  std::optional<std::string> violation_;
};

}  // namespace pelab::sim
