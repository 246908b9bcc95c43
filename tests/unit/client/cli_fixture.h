// Runs the whole command line in this process and captures its output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/app.h"
#include "core/base/sha256.h"
#include "core/db/check/check.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::client {

struct CliResult {
  int code = 0;
  std::string out;
  std::string err;
};

inline CliResult RunCli(std::vector<std::string> arguments) {
  std::vector<const char*> argv = {"pelab"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  CliResult result;
  Context context;
  context.out = [&](const std::string& text) { result.out += text; };
  context.err = [&](const std::string& text) { result.err += text; };
  result.code = RunPelab(static_cast<int>(argv.size()), argv.data(), context);
  return result;
}

// The weights that FillForTest stores for a job.
inline std::string ArtifactForTest(std::int64_t job) { return "weights " + std::to_string(job); }

inline std::string LayersForTest(int intact) {
  return R"({"chance":0.1,"correct":[)" + std::to_string(intact - 60) + "," +
         std::to_string(intact) + R"(],"gained":[0,2],"intact_correct":)" + std::to_string(intact) +
         R"(,"intact_nll":1.5,"lost":[60,2],"nll":[2.5,1.5],"nll_standard_error":[0.1,0.01],)" +
         R"("total":300})";
}

// Fills the database: two PEs with two seeds each, curves of two epochs, ablations of 2 x 3 heads
// and of layers, and weights. One rope job failed.
inline void FillForTest(db::DatabaseForTest& file) {
  file.Execute("BEGIN");  // one transaction: every commit waits for the disk
  const auto sweep = file.AddSweep("quick", "finished");
  for (int i = 0; i < 4; ++i) {
    const std::string pe = i < 2 ? "nope" : "rope";
    const int seed = i % 2;
    const bool failed = i == 3;
    const auto job =
        file.AddJob({.key = std::string(1, static_cast<char>('a' + i)) + "00001",
                     .pe = pe,
                     .seed = seed,
                     .state = failed ? "failed" : "succeeded",
                     .spec_json = R"({"format":1,"pe":{"name":")" + pe + R"("},"seed":)" +
                                  std::to_string(seed) + R"(,"task":{"name":"distance"}})"});
    file.AddToSweep(sweep, i, job);
    const auto attempt = file.AddAttempt(job, 1, 0, failed ? "failed" : "succeeded");
    file.Execute("INSERT INTO logs VALUES (" + std::to_string(attempt) +
                 ", 0, CAST('epoch 0' || char(10, 27) || '[31m done' AS BLOB))");
    if (failed) {
      file.Execute("UPDATE jobs SET error = 'oom' || char(27) || '[31m' WHERE job_id = " +
                   std::to_string(job));
      continue;
    }
    file.AddEpoch(attempt, 0, 90 + i);
    file.AddEpoch(attempt, 1, 101 + 7 * i);
    file.Summarize(job, 2, 101 + 7 * i, 101 + 7 * i, 300);
    file.AddHeadAblation(job, attempt, 2, 3, 101 + 7 * i, 300);
    file.AddAnalysis(job, attempt, "layer_ablation", LayersForTest(101 + 7 * i));
    const std::string content = ArtifactForTest(job);
    file.AddArtifact(attempt, "weights.safetensors", Sha256Hex(content),
                     static_cast<std::int64_t>(content.size()));
    const std::string path = *db::ArtifactPath(file.path(), Sha256Hex(content));
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
  }
  file.Execute("COMMIT");
}

}  // namespace pelab::client
