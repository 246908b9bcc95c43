// The common part of jobs that differ only in their seed is stored once, and every job's spec is
// still read back byte for byte.
#include "core/base/sha256.h"
#include "core/catalog/catalog.h"
#include "core/db/check/check.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

constexpr std::int64_t kLargestSeed = (std::int64_t{1} << 53) - 1;
constexpr std::int64_t kSeeds[] = {0, 1, 42, kLargestSeed};

struct Spec {
  std::string pe;
  std::string task;
  std::int64_t seed = 0;
  std::string json;
};

// Every encoding on every task, with part seeds that follow the job's seed, that differ from it, or
// that equal it by accident.
std::vector<Spec> EverySpec() {
  std::vector<Spec> specs;
  for (const catalog::Entry& pe : catalog::Pes()) {
    for (const catalog::Entry& task : catalog::Tasks()) {
      for (const std::int64_t seed : kSeeds) {
        const auto add = [&](const catalog::Values& set) {
          const std::string pe_name(pe.name);
          const std::string task_name(task.name);
          std::string json =
              ToCanonicalJson(experiment::MakeJob("clean", pe_name, task_name, seed, set));
          for (const Spec& known : specs) {
            if (known.json == json) return;
          }
          specs.push_back({pe_name, task_name, seed, std::move(json)});
        };
        add({});
        add({{"task.data_seed", catalog::Value(std::int64_t{42})}});
        add({{"task.data_seed", catalog::Value(kLargestSeed)}});
      }
    }
  }
  return specs;
}

std::vector<NewCell> CellsOf(const std::vector<Spec>& specs) {
  std::vector<NewCell> cells;
  for (const Spec& spec : specs) {
    NewCell cell = Cell(cells.size(), Sha256Hex(spec.json));
    cell.seed = spec.seed;
    cell.spec_json = spec.json;
    cells.push_back(std::move(cell));
  }
  return cells;
}

class ConfigurationsTest : public StoreTest {
 protected:
  // In the order of the job ids.
  std::vector<std::string> StoredSpecs() {
    SQLite::Statement rows(store_->database().connection(),
                           "SELECT spec_json, configuration_id FROM v_jobs ORDER BY job_id");
    std::vector<std::string> specs;
    while (rows.executeStep()) {
      specs.push_back(rows.getColumn(0).getString());
      EXPECT_FALSE(rows.getColumn(1).isNull());
    }
    return specs;
  }
};
INSTANTIATE_TEST_SUITE_P(File, ConfigurationsTest, testing::Values(true));

std::vector<std::string> JsonOf(const std::vector<Spec>& specs) {
  std::vector<std::string> all;
  for (const Spec& spec : specs) all.push_back(spec.json);
  return all;
}

TEST_P(ConfigurationsTest, EverySpecIsThereAndSeedsShareIt) {
  const std::vector<Spec> specs = EverySpec();
  Submit("a", CellsOf(specs), false, 0, "[]");
  EXPECT_EQ(StoredSpecs(), JsonOf(specs));
  // One template that all seeds share, and two in which the data seed is fixed: 42 and the largest.
  const std::size_t pairs = catalog::Pes().size() * catalog::Tasks().size();
  EXPECT_EQ(Text("SELECT count(*) FROM configurations"), absl::StrCat(3 * pairs));
  EXPECT_EQ(Text("SELECT count(*) FROM v_jobs GROUP BY configuration_id LIMIT 1"), "4");
  EXPECT_EQ(Text("SELECT count(*) FROM configurations WHERE instr(template, char(31)) = 0"), "0");
  Open();
  EXPECT_EQ(StoredSpecs(), JsonOf(specs));
  const auto checks = db::CheckDatabase(path_);
  ASSERT_TRUE(checks.ok()) << checks.status();
  for (const db::Check& check : *checks) {
    EXPECT_THAT(check.problems, testing::IsEmpty()) << check.name;
  }
}

TEST_P(ConfigurationsTest, LaterSweepsAndGenerationsShareThemToo) {
  const std::vector<NewCell> cells = CellsOf(EverySpec());
  const std::vector<NewCell> some(cells.begin(), cells.begin() + 6);
  Submit("a", some);
  const std::string before = Text("SELECT * FROM configurations");
  Submit("b", some, /*fresh=*/true);
  Open();
  Submit("c", some, /*fresh=*/true);
  EXPECT_EQ(Text("SELECT count(*), max(generation) FROM jobs"), "18 3");
  EXPECT_EQ(Text("SELECT * FROM configurations"), before);
}

TEST_P(ConfigurationsTest, WorkersGetTheSpecAsItWas) {
  const std::vector<Spec> specs = EverySpec();
  Submit("a", CellsOf(specs));
  for (std::size_t i = 0; i < specs.size(); i += 7) {
    Assign(static_cast<std::int64_t>(i) + 1, 100 + i);
    EXPECT_EQ(assignment_.spec_json, specs[i].json);
  }
}

}  // namespace
}  // namespace pelab::store
