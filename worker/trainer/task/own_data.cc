#include "worker/trainer/task/own_data.h"

#include <string>
#include <utility>

#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {
namespace {

[[noreturn]] void Fail(const experiment::Job& job, const std::string& problem) {
  throw TrainerError(ErrorKind::kBadSpec, "data " + job.Choice("task.data") + ": " + problem);
}

// Every field that follows from the file must be as the file says: a coordinator takes them from
// the submitter.
void CheckFields(const experiment::Job& job, const catalog::Values& of_file) {
  for (const auto& [field, value] : of_file) {
    if (field == "task.file") continue;  // its hash was compared
    const auto of_job = job.values.find(field);
    if (of_job != job.values.end() && of_job->second == value) continue;
    Fail(job,
         "its file says that " + field + " is " + catalog::ToText(value) +
             "; allowed: that of the job, " +
             (of_job == job.values.end() ? "which has none" : catalog::ToText(of_job->second)));
  }
}

// The split that the job tests on.
std::size_t TestSplitOf(const experiment::Job& job, const experiment::OwnTask& declared) {
  const experiment::OwnSplit* test = declared.Find(job.Choice("task.test"));
  if (test == nullptr || test == &declared.splits.front()) {
    Fail(job, "its file has no split " + job.Choice("task.test") + " to test on; it has " +
                  declared.TestSplits());
  }
  return static_cast<std::size_t>(test - declared.splits.data());
}

void Append(const TaskFile& file, std::int32_t split, Dataset* data) {
  const std::int64_t columns = file.declared.by_position ? file.declared.length : 1;
  const auto copy = [](const std::vector<std::int32_t>& from, std::int64_t row, std::int64_t size,
                       std::vector<std::int32_t>* to) {
    const auto begin = from.begin() + row * size;
    to->insert(to->end(), begin, begin + size);
  };
  for (std::int64_t i = 0; i < file.examples(); ++i) {
    if (file.split[static_cast<std::size_t>(i)] != split) continue;
    copy(file.tokens, i, file.declared.length, &data->tokens);
    copy(file.lengths, i, 1, &data->lengths);
    copy(file.targets, i, columns, &data->labels);
  }
}

}  // namespace

TaskFile ReadOwnFile(const experiment::Job& job) {
  const std::string bytes =
      ReadNamedFile("data " + job.Choice("task.data"), job.Choice("task.file"));
  TaskFileResult read = ParseTaskFile(bytes);
  if (!read.problem.empty()) Fail(job, read.problem);
  const experiment::OwnTask& declared = read.file.declared;
  const experiment::OwnSplit& test = declared.splits[TestSplitOf(job, declared)];
  catalog::Values fields = experiment::FieldsOf(declared, test);
  // A job of an older declaration has the chance of all classes, whichever are scored.
  if (experiment::LeavesZeroOut(job) && test.chance_nonzero == job.Real("task.chance")) {
    fields["task.chance"] = *test.chance_nonzero;
  }
  CheckFields(job, fields);
  return std::move(read.file);
}

Dataset ExamplesOf(const TaskFile& file, const std::vector<std::size_t>& splits) {
  const experiment::OwnTask& declared = file.declared;
  Dataset data;
  data.length = declared.length;
  data.label_min = declared.first_label;
  data.label_count = declared.classes;
  data.by_position = declared.by_position;
  for (const std::size_t split : splits) {
    if (split == 0) data.train_examples = declared.splits.front().examples;
    Append(file, static_cast<std::int32_t>(split), &data);
  }
  return data;
}

Dataset ReadOwnData(const experiment::Job& job) {
  const TaskFile file = ReadOwnFile(job);
  return ExamplesOf(file, {0, TestSplitOf(job, file.declared)});
}

}  // namespace pelab::trainer
