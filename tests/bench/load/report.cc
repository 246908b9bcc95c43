#include "tests/bench/load/report.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace pelab::load {

void Report::Add(const std::string& what, double value, const std::string& unit,
                 const std::string& asked) {
  rows_.push_back({what, value, unit, asked});
}

void Report::Add(const std::string& what, Latencies& latencies, const std::string& asked) {
  Add(what + ", p50", latencies.Quantile(0.5), "ms");
  Add(what + ", p99", latencies.Quantile(0.99), "ms", asked);
  Add(what + ", max", latencies.Max(), "ms");
}

void Report::AddTable(const std::string& name, const std::string& text, nlohmann::json rows) {
  table_texts_.push_back(text);
  tables_[name] = std::move(rows);
}

void Report::Print() const {
  std::printf("%s\n", scenario_.c_str());
  for (const Row& row : rows_) {
    std::printf("  %-58s %14.*f %-9s %s\n", row.what.c_str(), row.value < 100 ? 2 : 0, row.value,
                row.unit.c_str(), row.asked.empty() ? "" : ("asked: " + row.asked).c_str());
  }
  for (const std::string& text : table_texts_) std::printf("\n%s\n", text.c_str());
  for (const std::string& note : notes_) std::printf("  %s\n", note.c_str());
  for (const std::string& problem : problems_) std::printf("  WRONG: %s\n", problem.c_str());
  std::fflush(stdout);
}

absl::Status Report::Write(const std::string& path) const {
  nlohmann::json figures = nlohmann::json::array();
  for (const Row& row : rows_) {
    figures.push_back(
        {{"what", row.what}, {"value", row.value}, {"unit", row.unit}, {"asked", row.asked}});
  }
  nlohmann::json object = {
      {"scenario", scenario_}, {"figures", figures}, {"notes", notes_}, {"problems", problems_}};
  for (const auto& [name, rows] : tables_) object[name] = rows;
  std::ofstream file(path);
  file << object.dump(2) << "\n";
  file.close();
  if (!file) return absl::InternalError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

}  // namespace pelab::load
