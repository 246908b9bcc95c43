// The committed documents, specs and keys of tests/golden, which an independent script checks too.
// A change here changes the identity of every stored job.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/sha256.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/sweep.h"

namespace pelab::experiment {
namespace {

nlohmann::json Cases() {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/tests/golden/canonical_keys.json");
  return nlohmann::json::parse(file);
}

// Databases hold jobs under these keys. The file may grow, but the entries of November 2026 must
// stay.
TEST(GoldenKeys, ThoseOfStoredJobsStay) {
  const nlohmann::json cases = Cases();
  ASSERT_GE(cases.size(), 53u);
  std::string keys;
  for (std::size_t i = 0; i < 53; ++i) keys += cases[i]["key"].get<std::string>();
  EXPECT_EQ(Sha256Hex(keys), "b3b6ece8fcd63ab69fbd321bba50d9fac88b22c41baa52829552c2f3c30fc33c");
}

TEST(GoldenKeys, HoldEveryProtocolEncodingAndTask) {
  std::set<std::string> names;
  for (const nlohmann::json& golden : Cases()) names.insert(golden["name"].get<std::string>());
  for (const catalog::Entry& protocol : catalog::Protocols()) {
    for (const catalog::Entry& pe : catalog::Pes()) {
      for (const catalog::Entry& task : catalog::Tasks()) {
        if (!CheckJob(MakeJob(protocol.name, pe.name, task.name, 0)).empty()) continue;
        const std::string name =
            std::string(protocol.name) + " " + std::string(pe.name) + " " + std::string(task.name);
        EXPECT_EQ(names.count(name), 1u)
            << name << ": tests/golden/canonical_key.py --write adds it";
      }
    }
  }
}

TEST(GoldenKeys, DocumentsGiveTheCommittedSpecsAndKeys) {
  for (const nlohmann::json& golden : Cases()) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const SweepResult result = ParseSweep(golden["document"].get<std::string>());
    ASSERT_TRUE(result.sweep);
    ASSERT_EQ(result.sweep->cells(), 1u);
    const auto cell = result.sweep->At(0);
    ASSERT_TRUE(cell);
    EXPECT_EQ(cell->key, golden["key"].get<std::string>());
    EXPECT_EQ(nlohmann::json::parse(cell->canonical_json), golden["spec"]);
    const CanonicalResult read = FromCanonicalJson(golden["spec"].dump());
    ASSERT_TRUE(read.job);
    EXPECT_EQ(Sha256Hex(ToCanonicalJson(*read.job)), golden["key"].get<std::string>());
  }
}

}  // namespace
}  // namespace pelab::experiment
