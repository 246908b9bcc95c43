// Files of data of one's own, and the jobs that name them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/base/sha256.h"
#include "core/safetensors/task_file.h"
#include "tests/support/data_file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {

// A folder of files, which is the one of --files as long as the object lives.
class DataFolder {
 public:
  DataFolder() { UseFilesIn(folder_.path()); }
  ~DataFolder() { UseFilesIn(""); }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  void WriteAs(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  // Writes the file. The job's fields are those of the file, except those that are `set`.
  experiment::Job Job(const DataFile& file, const catalog::Values& set = {},
                      const std::string& test = "test", std::string_view protocol = "clean",
                      std::string_view pe = "nope") const {
    const std::string bytes = file.Bytes();
    TaskFileResult read = ParseTaskFile(bytes);
    EXPECT_EQ(read.problem, "");
    read.file.declared.sha256 = Sha256Hex(bytes);
    WriteAs(read.file.declared.sha256, bytes);
    catalog::Values values =
        experiment::FieldsOf(read.file.declared, *read.file.declared.Find(test));
    for (const auto& [field, value] : set) values[field] = value;
    return SmallJob(protocol, pe, "own", values);
  }

 private:
  TempDir folder_;
};

struct RandomShape {
  std::int64_t train = 96;
  std::int64_t test = 48;
  std::int64_t length = 16;
  bool padded = true;
};

// Random tokens of 40, and labels 2 to 6 at about two thirds of the positions. The examples of the
// two splits alternate as long as there are both.
inline DataFile RandomByPosition(const RandomShape& shape = {}) {
  const std::int64_t examples = shape.train + shape.test;
  CounterRandom random(5, "test/own_data");
  const auto below = [&](std::int64_t most) {
    return static_cast<std::int32_t>(random.Below(static_cast<std::uint32_t>(most)));
  };
  std::vector<std::int32_t> tokens, targets, lengths, split;
  std::int64_t train = 0;
  for (std::int64_t i = 0; i < examples; ++i) {
    const bool test = i % 2 == 1 ? i / 2 < shape.test : train == shape.train;
    train += test ? 0 : 1;
    split.push_back(test);
    lengths.push_back(static_cast<std::int32_t>(
        shape.padded ? shape.length / 4 + 1 + below(3 * shape.length / 4) : shape.length));
    for (std::int64_t t = 0; t < shape.length; ++t) {
      tokens.push_back(1 + below(39));
      targets.push_back(below(3) == 0 ? -1 : 2 + below(5));
    }
  }
  DataFile file;
  file.metadata = {{"first_label", "2"}, {"classes", "5"}, {"vocabulary", "40"}};
  file.Set("tokens", {examples, shape.length}, tokens);
  file.Set("targets", {examples, shape.length}, targets);
  file.Set("lengths", {examples}, lengths);
  file.Set("split", {examples}, split);
  return file;
}

}  // namespace pelab::trainer
