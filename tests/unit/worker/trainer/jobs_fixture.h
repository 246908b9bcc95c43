// Small jobs and golden files for the trainer's tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/experiment/job.h"

namespace pelab::trainer {

// The defaults of `protocol` at a size that trains in a second: T 16, width 16, 2 layers of 2
// heads, no dropout.
inline experiment::Job SmallJob(std::string_view protocol, std::string_view pe,
                                std::string_view task, const catalog::Values& set = {}) {
  catalog::Values values = {
      {"model.layers", std::int64_t{2}},         {"model.heads", std::int64_t{2}},
      {"model.d_model", std::int64_t{16}},       {"model.d_ff", std::int64_t{32}},
      {"model.max_len", std::int64_t{16}},       {"model.dropout", 0.0},
      {"task.length", std::int64_t{16}},         {"task.vocabulary", std::int64_t{40}},
      {"task.train_examples", std::int64_t{96}}, {"task.test_examples", std::int64_t{48}},
      {"task.triggers", std::int64_t{6}},        {"train.batch_size", std::int64_t{32}},
      {"train.epochs", std::int64_t{2}},         {"train.lr", 1e-2}};
  for (const auto& [field, value] : set) values[field] = value;
  return experiment::MakeJob(protocol, pe, task, 3, values);
}

// Reads tests/golden/NAME, which an independent script has computed.
inline nlohmann::json Golden(const std::string& name) {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The value of element `index` of the parameter `name` in the golden scripts; see
// tests/golden/decoder.py.
inline double FormulaWeight(const std::string& name, std::int64_t index) {
  std::int64_t sum = 37 * index;
  for (std::size_t i = 0; i < name.size(); ++i) {
    sum += static_cast<std::int64_t>(i + 1) * static_cast<unsigned char>(name[i]);
  }
  const double value = static_cast<double>(sum % 101 - 50) / 100;
  constexpr std::string_view kNorm = "norm.weight";
  const bool norm = name.size() >= kNorm.size() &&
                    name.compare(name.size() - kNorm.size(), kNorm.size(), kNorm) == 0;
  return norm ? 1 + value / 2 : value;
}

}  // namespace pelab::trainer
