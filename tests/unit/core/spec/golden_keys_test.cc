// The committed documents, specs and keys of tests/golden, which an independent script checks too:
// a change here is a change of every stored job's identity.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/sha256.h"
#include "core/spec/sweep.h"

namespace pelab::spec {
namespace {

TEST(GoldenKeys, DocumentsGiveTheCommittedSpecsAndKeys) {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/tests/golden/canonical_keys.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 53u);
  for (const nlohmann::json& golden : cases) {
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
}  // namespace pelab::spec
