// A small database with jobs in every state, in a temporary directory.
#pragma once

#include <string>

#include "core/base/file.h"
#include "server/store/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/populator.h"
#include "tests/support/temp_dir.h"

namespace pelab::fuzz {

// Two encodings, two seeds and both kinds of analyses; 2 layers of 2 heads, 3 epochs.
inline constexpr char kSmallSweep[] =
    "name: small\n"
    "pe: [nope, rope]\n"
    "task: {name: distance, train_examples: 99, test_examples: 97}\n"
    "seed: 0..4\n"
    "model: {d_model: 8, d_ff: 16, heads: 2, layers: 2}\n"
    "train: {epochs: 3}\n"
    "analyses: [head_ablation, layer_ablation]\n";

class SmallDatabase {
 public:
  SmallDatabase() {
    auto store = store::Store::Open(path());
    Require(store.ok(), "the database can be made", store.status().ToString());
    const PopulateOptions options{.fail_every = 4, .open_every = 3, .log = "line\n"};
    const absl::Status added = Populator(options, **store).Add("small.yaml", kSmallSweep);
    Require(added.ok(), "the database can be filled", added.ToString());
    while ((*store)->MoveEpochs()) {
    }
    (*store)->Checkpoint(/*truncate=*/true);
  }
  std::string path() const { return directory_ / "small.db"; }
  std::string directory() const { return directory_.path(); }

 private:
  TempDir directory_;
};

}  // namespace pelab::fuzz
