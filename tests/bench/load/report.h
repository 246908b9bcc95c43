// The results of a run: a table for people, JSON for programs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/load/latencies.h"

namespace pelab::load {

class Report {
 public:
  explicit Report(std::string scenario) : scenario_(std::move(scenario)) {}

  // `asked` is the target, for people: ">= 10,000". It is never asserted.
  void Add(const std::string& what, double value, const std::string& unit,
           const std::string& asked = "");
  // Adds p50, p99 and max of `latencies`, in ms; `asked` is the target for p99.
  void Add(const std::string& what, Latencies& latencies, const std::string& asked = "");
  // Adds a table: `text` for people, and the same rows for programs, as the member `name`.
  void AddTable(const std::string& name, const std::string& text, nlohmann::json rows);
  void Note(const std::string& note) { notes_.push_back(note); }
  // Records a problem, which makes the run fail.
  void Fail(const std::string& problem) { problems_.push_back(problem); }
  bool ok() const { return problems_.empty(); }

  void Print() const;
  // Writes one JSON object.
  absl::Status Write(const std::string& path) const;

 private:
  struct Row {
    std::string what;
    double value = 0;
    std::string unit;
    std::string asked;
  };

  std::string scenario_;
  std::vector<Row> rows_;
  std::vector<std::string> table_texts_;
  std::map<std::string, nlohmann::json> tables_;
  std::vector<std::string> notes_;
  std::vector<std::string> problems_;
};

}  // namespace pelab::load
