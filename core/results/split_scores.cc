#include "core/results/split_scores.h"

#include <algorithm>
#include <tuple>

#include "core/base/json_text.h"
#include "core/render/json.h"

namespace pelab::results {

std::vector<SplitScore> SplitScoresOf(const v1::AnalysisRow& row) {
  std::vector<SplitScore> scores;
  const auto result = ParseJson<render::Json>(row.result_json());
  try {
    for (const auto& split : result.at("splits")) {
      const SplitScore score{.name = split.at("name").get<std::string>(),
                             .total = split.at("total").get<std::int64_t>(),
                             .correct = split.at("correct").get<std::int64_t>(),
                             .chance = split.at("chance").get<double>()};
      if (score.total > 0 && 0 <= score.correct && score.correct <= score.total) {
        scores.push_back(score);
      }
    }
  } catch (const render::Json::exception&) {
    return {};
  }
  return scores;
}

const SplitScore* SplitScores::Find(std::int64_t job, const std::string& split) const {
  const auto of_job = of_jobs.find(job);
  if (of_job == of_jobs.end()) return nullptr;
  const auto found = of_job->second.find(split);
  return found == of_job->second.end() ? nullptr : &found->second;
}

SplitScores CollectSplitScores(const std::vector<v1::AnalysisRow>& rows) {
  SplitScores scores;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t>
      analyses;  // of the score that counts
  for (const v1::AnalysisRow& row : rows) {
    for (const SplitScore& score : SplitScoresOf(row)) {
      if (std::find(scores.names.begin(), scores.names.end(), score.name) == scores.names.end()) {
        scores.names.push_back(score.name);
      }
      SplitScore& known = scores.of_jobs[row.job_id()][score.name];
      std::int64_t& analysis = analyses[{row.job_id(), score.name}];
      if (std::tuple(score.total, row.analysis_id()) <= std::tuple(known.total, analysis)) continue;
      known = score;
      analysis = row.analysis_id();
    }
  }
  return scores;
}

}  // namespace pelab::results
