// pelab-populate: writes a database like a coordinator's, with made-up results and without
// training. For tests of programs that show results, and to measure their speed.
//
//   pelab-populate docs/sweeps/quick.yaml --db build/made-up.db
//   pelab-populate sweep.yaml --db FILE --fail-every 7 --open-every 5 --error 'CUDA out of memory'
//
// All writes go through the coordinator's own store. The same sweep, options and seed give the same
// results. The numbers have the shapes of real ones (learning curves that level off, a head that
// matters) but mean nothing.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/store/store.h"
#include "tests/support/populator.h"

namespace pelab {
namespace {

struct Options : PopulateOptions {
  std::vector<std::string> sweeps;
  std::string database;
};

absl::Status Populate(const Options& options) {
  PELAB_ASSIGN_OR_RETURN(auto store, store::Store::Open(options.database));
  Populator populator(options, *store);
  for (const std::string& path : options.sweeps) {
    std::ifstream file(path);
    if (!file) return absl::NotFoundError(absl::StrCat(path, ": there is no such file"));
    PELAB_RETURN_IF_ERROR(populator.Add(path, {std::istreambuf_iterator<char>(file), {}}));
  }
  while (store->MoveEpochs()) {
  }
  store->Checkpoint(/*truncate=*/true);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("A database with made-up results, written by the coordinator's store",
               "pelab-populate");
  app.add_option("sweep", options.sweeps, "sweep files")->required();
  app.add_option("--db", options.database, "the database, made or added to")->required();
  app.add_option("--set", options.set, "field=value over the documents, as in pelab submit");
  app.add_option("--seed", options.seed, "of the made-up numbers");
  app.add_option("--fail-every", options.fail_every, "every so manieth job fails; 0: none");
  app.add_option("--open-every", options.open_every,
                 "every so manieth job is queued or running; 0: none");
  app.add_option("--error", options.error, "of the jobs that fail");
  app.add_option("--log", options.log, "what every attempt's log holds");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Populate(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "pelab-populate: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace pelab

int main(int argc, char** argv) { return pelab::Main(argc, argv); }
