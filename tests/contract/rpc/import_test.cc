// Imports of jobs that were trained for another database: each is stored once and completely, or
// not at all.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "core/db/check/check.h"
#include "core/db/import/import_reader.h"
#include "pelab/v1/transfer.grpc.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Parts = std::vector<v1::ImportJobPart>;

constexpr char kSpan[] = "b7ad6b7169203331";

std::string Nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "{\"a\":";
  return text + "1" + std::string(depth, '}');
}

// Trains jobs in one database, which `there_` reads, then serves another database.
class ImportTest : public CoordinatorTest {
 protected:
  static constexpr int kEpochs = 3;

  void SetUp() override {
    Start();
    Submit(Document("s", "[0]", kEpochs), "token-s");
    FakeWorker worker(channel_, "w1", 2);
    Script first(worker.AwaitAssignment());
    Script second(worker.AwaitAssignment());
    worker.Send({first.Started(0, kEpochs), first.Epoch(0), first.Epoch(1), first.Epoch(2, 39),
                 first.Artifact(Put(first.assignment(), weights_), weights_.size()),
                 first.Ablation(), first.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
    worker.Send(second.Whole(kEpochs));
    AwaitSweep("s",
               [](const v1::Sweep& sweep) { return sweep.state() == v1::SWEEP_STATE_FINISHED; });
    worker.Leave();
    there_path_ = options_.database;
    ServeAnother();
    there_ = *db::ImportReader::Open(there_path_);
    std::int64_t others = 0;
    jobs_ = *there_->Finished(&others);
    ASSERT_EQ(jobs_.size(), 2);
    ASSERT_EQ(others, 0);
  }

  void ServeAnother() {
    coordinator_.reset();
    options_.database = absl::StrCat(directory_, "/here.db");
    Start();
    transfer_ = v1::Transfer::NewStub(channel_);
  }

  Parts PartsOf(std::int64_t job_id) {
    const db::ExportedJob job = *there_->ReadJob(job_id);
    Parts parts(2);
    *parts[0].mutable_job() = job.job;
    for (const v1::Epoch& epoch : job.epochs) *parts[1].mutable_epochs()->add_epochs() = epoch;
    for (const v1::ImportedAnalysis& analysis : job.analyses) {
      *parts.emplace_back().mutable_analysis() = analysis;
    }
    for (const v1::ImportedFile& file : job.files) {
      *parts.emplace_back().mutable_file() = file;
      parts.emplace_back().set_data(weights_);
    }
    parts.emplace_back().set_end(true);
    return parts;
  }

  grpc::Status Send(const Parts& parts, v1::ImportJobResponse* response = nullptr) {
    v1::ImportJobResponse ignored;
    const auto context = Context();
    const auto writer =
        transfer_->ImportJob(context.get(), response != nullptr ? response : &ignored);
    for (const v1::ImportJobPart& part : parts) {
      if (!writer->Write(part)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  v1::ImportJobResponse Import(std::int64_t job_id) {
    v1::ImportJobResponse response;
    const grpc::Status status = Send(PartsOf(job_id), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::ImportVerdict Check(const std::string& key, const std::string& hash) {
    v1::CheckImportRequest request;
    request.add_keys()->set_key(key);
    request.mutable_keys(0)->set_curve_sha256(hash);
    v1::CheckImportResponse response;
    EXPECT_TRUE(transfer_->CheckImport(Context().get(), request, &response).ok());
    EXPECT_EQ(response.verdicts_size(), 1);
    return response.verdicts(0);
  }
  // The answer to a sweep that is refused; its cells are not sent.
  grpc::Status Refused(const v1::ImportedSweep& sweep) {
    v1::ImportSweepResponse response;
    const auto context = Context();
    const auto writer = transfer_->ImportSweep(context.get(), &response);
    v1::ImportSweepPart part;
    *part.mutable_sweep() = sweep;
    writer->Write(part);
    *part.mutable_cells() = *there_->Cells(there_->Sweeps()->front().sweep_id, 0, 100);
    writer->Write(part);
    part.set_end(true);
    writer->Write(part);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    return status;
  }
  v1::ImportSweepResponse ImportSweep(bool end = true) {
    const db::ExportedSweep sweep = there_->Sweeps()->front();
    v1::ImportSweepResponse response;
    const auto context = Context();
    const auto writer = transfer_->ImportSweep(context.get(), &response);
    v1::ImportSweepPart part;
    *part.mutable_sweep() = sweep.sweep;
    writer->Write(part);
    *part.mutable_cells() = *there_->Cells(sweep.sweep_id, 0, 1);
    writer->Write(part);
    *part.mutable_cells() = *there_->Cells(sweep.sweep_id, 1, 100);
    writer->Write(part);
    part.set_end(true);
    if (end) writer->Write(part);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().ok(), end);
    return response;
  }

  int JobsHere() { return Jobs("").jobs_size(); }
  void ExpectSound() {
    const auto checks = db::CheckDatabase(options_.database);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      EXPECT_THAT(check.problems, IsEmpty()) << check.name;
    }
  }

  const std::string weights_ = std::string(300'000, 'w');
  std::string there_path_;
  std::unique_ptr<db::ImportReader> there_;
  std::vector<db::FinishedJob> jobs_;
  std::unique_ptr<v1::Transfer::Stub> transfer_;
};

TEST_F(ImportTest, EverythingComesAndASecondImportChangesNothing) {
  const std::string hash = *there_->HashOfCurve(jobs_[0].job_id);
  EXPECT_EQ(Check(jobs_[0].key, hash), v1::IMPORT_VERDICT_NEW);
  const v1::ImportJobResponse first = Import(jobs_[0].job_id);
  EXPECT_EQ(first.verdict(), v1::IMPORT_VERDICT_NEW);
  EXPECT_EQ(first.generation(), 1);
  EXPECT_EQ(Import(jobs_[0].job_id).verdict(), v1::IMPORT_VERDICT_PRESENT);
  Restart();  // answered imports are stored
  transfer_ = v1::Transfer::NewStub(channel_);
  EXPECT_EQ(Check(jobs_[0].key, hash), v1::IMPORT_VERDICT_PRESENT);
  EXPECT_EQ(Check(jobs_[0].key, std::string(64, '0')), v1::IMPORT_VERDICT_DIFFERENT);
  EXPECT_EQ(JobsHere(), 1);
  ExpectSound();

  const auto here = *db::ImportReader::Open(options_.database);
  const db::ExportedJob copy = *here->ReadJob(first.job_id());
  const db::ExportedJob original = *there_->ReadJob(jobs_[0].job_id);
  EXPECT_EQ(copy.job.SerializeAsString(), original.job.SerializeAsString());
  ASSERT_EQ(copy.epochs.size(), kEpochs);
  for (int i = 0; i < kEpochs; ++i) {
    EXPECT_EQ(copy.epochs[i].SerializeAsString(), original.epochs[i].SerializeAsString());
  }
  ASSERT_EQ(copy.analyses.size(), 1);
  EXPECT_EQ(copy.analyses[0].SerializeAsString(), original.analyses[0].SerializeAsString());
  ASSERT_EQ(copy.files.size(), 1);
  EXPECT_EQ(copy.files[0].SerializeAsString(), original.files[0].SerializeAsString());
  const v1::JobRow row = Jobs("").jobs(0);
  EXPECT_EQ(row.test_correct(), 41);  // of the last epoch
  EXPECT_DOUBLE_EQ(row.best_test_accuracy(), 41.0 / 97);
  EXPECT_EQ(row.wall_seconds(), 1.5);
}

TEST_F(ImportTest, TracesAndEnergyComeToo) {
  Parts parts = PartsOf(jobs_[0].job_id);
  parts[0].mutable_job()->mutable_attempts(0)->set_parent_span_id(kSpan);
  parts[0].mutable_job()->mutable_attempts(0)->set_energy_joules(12.5);
  ASSERT_TRUE(Send(parts).ok());
  Import(jobs_[1].job_id);
  EXPECT_TRUE(ImportSweep().finished());
  const auto here = *db::ImportReader::Open(options_.database);
  const v1::ImportedSweep sweep = here->Sweeps()->front().sweep;
  const v1::ImportedSweep original = there_->Sweeps()->front().sweep;
  EXPECT_EQ(sweep.SerializeAsString(), original.SerializeAsString());
  EXPECT_EQ(sweep.trace_id().size(), 32u);
  for (const auto& [job_id, key] : jobs_) {
    const v1::ImportedJob job = there_->ReadJob(job_id)->job;
    ASSERT_EQ(job.attempts_size(), 1);
    EXPECT_EQ(job.attempts(0).trace_id(), sweep.trace_id());
    EXPECT_EQ(job.attempts(0).span_id().size(), 16u);
  }
  const v1::ImportedAttempt attempt = here->ReadJob(jobs_[0].job_id)->job.attempts(0);
  EXPECT_EQ(attempt.parent_span_id(), kSpan);
  EXPECT_EQ(attempt.energy_joules(), 12.5);
  EXPECT_FALSE(here->ReadJob(jobs_[1].job_id)->job.attempts(0).has_energy_joules());
  v1::ListAttemptsResponse attempts;
  ASSERT_TRUE(results_->ListAttempts(Context().get(), {}, &attempts).ok());
  ASSERT_EQ(attempts.rows_size(), 2);
  for (const v1::AttemptRow& row : attempts.rows()) EXPECT_EQ(row.trace_id(), sweep.trace_id());
  ExpectSound();
}

TEST_F(ImportTest, WhatBreaksOffIsNotStored) {
  const Parts parts = PartsOf(jobs_[0].job_id);
  for (std::size_t sent = 0; sent < parts.size(); ++sent) {
    const grpc::Status status = Send({parts.begin(), parts.begin() + static_cast<int>(sent)});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << sent;
    EXPECT_EQ(JobsHere(), 0);
  }
  EXPECT_EQ(Import(jobs_[0].job_id).verdict(), v1::IMPORT_VERDICT_NEW);
  ExpectSound();
}

TEST_F(ImportTest, WhatNoSoundDatabaseHoldsIsRefusedWithItsReason) {
  struct Case {
    const char* words;
    std::function<void(Parts&)> spoil;
  };
  const auto job = [](Parts& parts) { return parts[0].mutable_job(); };
  // Changes the text of the spec, and the key with it.
  const auto respell = [&job](Parts& parts, const std::string& from, const std::string& to) {
    std::string spec = parts[0].job().spec_json();
    ASSERT_NE(spec.find(from), std::string::npos) << from << " in " << spec;
    spec.replace(spec.find(from), from.size(), to);
    job(parts)->set_spec_json(spec);
    job(parts)->set_key(Sha256Hex(spec));
  };
  const auto epoch = [](Parts& parts, int i) {
    return parts[1].mutable_epochs()->mutable_epochs(i);
  };
  const auto matrix = [](Parts& parts) {
    return parts[2].mutable_analysis()->mutable_head_ablation();
  };
  const std::vector<Case> cases = {
      // This must come first: later cases find the file here and ignore the bytes that are sent.
      {"SHA-256 is", [&](Parts& p) { p[4].mutable_data()->at(0) = 'x'; }},
      {"a spec of another key", [&](Parts& p) { job(p)->set_key(std::string(64, 'a')); }},
      {"a spec of another key", [&](Parts& p) { job(p)->mutable_spec_json()->append(" "); }},
      {"not a JSON object",
       [&](Parts& p) {
         job(p)->set_spec_json("[]");
         job(p)->set_key(Sha256Hex("[]"));
       }},
      {"has a spec that cannot be: format is missing",
       [&](Parts& p) {
         job(p)->set_spec_json("{}");
         job(p)->set_key(Sha256Hex("{}"));
       }},
      {"unknown pe \"<b>\"", [&](Parts& p) { respell(p, "\"nope\"", "\"<b>\""); }},
      {"train.epochs is \"3\"", [&](Parts& p) { respell(p, "\"epochs\":3", "\"epochs\":\"3\""); }},
      {"seed is -1", [&](Parts& p) { respell(p, "\"seed\":0", "\"seed\":-1"); }},
      {"not written canonically", [&](Parts& p) { respell(p, "\"seed\":0", "\"seed\": 0"); }},
      {"a spec that begins with a byte order mark",
       [&](Parts& p) { respell(p, "{\"format\"", "\xEF\xBB\xBF{\"format\""); }},
      {"a label that has 1048576 bytes",
       [&](Parts& p) { job(p)->set_pe_label(std::string(1 << 20, 'x')); }},
      {"a protocol that has the character \\n", [&](Parts& p) { job(p)->set_protocol("a\nb"); }},
      {"a device that has the character \\x1b", [&](Parts& p) { job(p)->set_device("\x1b[2J"); }},
      {"an end that is -5 ms", [&](Parts& p) { job(p)->set_ended_at_ms(-5); }},
      {"a worker whose host has 300 bytes",
       [&](Parts& p) { job(p)->mutable_workers(0)->set_host(std::string(300, 'h')); }},
      {"a worker with -1 slots", [&](Parts& p) { job(p)->mutable_workers(0)->set_slots(-1); }},
      {"an attempt in slot -1", [&](Parts& p) { job(p)->mutable_attempts(0)->set_slot(-1); }},
      {"unknown kind of error",
       [&](Parts& p) { job(p)->mutable_attempts(0)->set_error_kind("x"); }},
      {"an attempt whose error has 20000 bytes",
       [&](Parts& p) { job(p)->mutable_attempts(0)->set_error(std::string(20'000, 'e')); }},
      {"the name of a file is", [&](Parts& p) { p[3].mutable_file()->set_name("../\x1b[31m"); }},
      {"no label", [&](Parts& p) { job(p)->clear_pe_label(); }},
      {"unknown kind of device", [&](Parts& p) { job(p)->set_device_kind("abacus"); }},
      {"2 of 3 epochs", [&](Parts& p) { p[1].mutable_epochs()->mutable_epochs()->RemoveLast(); }},
      {"epoch 7 comes where epoch 1 is due", [&](Parts& p) { epoch(p, 1)->set_epoch(7); }},
      {"epoch 2: \"test_loss\" is nan",
       [&](Parts& p) { epoch(p, 2)->set_test_loss(std::numeric_limits<double>::quiet_NaN()); }},
      {"epoch 0: \"train_correct\" is 100", [&](Parts& p) { epoch(p, 0)->set_train_correct(100); }},
      {"no attempt starts at epoch 0", [&](Parts& p) { job(p)->clear_attempts(); }},
      {"an attempt with the trace \"\" or spans",
       [&](Parts& p) {
         job(p)->mutable_attempts(0)->clear_trace_id();
         job(p)->mutable_attempts(0)->set_span_id(kSpan);
       }},
      {"an attempt: \"energy_joules\" is -1",
       [&](Parts& p) { job(p)->mutable_attempts(0)->set_energy_joules(-1); }},
      {"not ids of W3C", [&](Parts& p) { job(p)->mutable_attempts(0)->set_trace_id("0"); }},
      {"not ids of W3C", [&](Parts& p) { job(p)->mutable_attempts(0)->set_parent_span_id("\n"); }},
      {"not ended", [&](Parts& p) { job(p)->mutable_attempts(0)->clear_outcome(); }},
      {"no attempt of it succeeded",
       [&](Parts& p) { job(p)->mutable_attempts(0)->set_outcome(v1::ATTEMPT_OUTCOME_LOST); }},
      {"2 attempts trained it",
       [&](Parts& p) { *job(p)->add_attempts() = p[0].job().attempts(0); }},
      {"worker is not named", [&](Parts& p) { job(p)->clear_workers(); }},
      {"a spec that is nested more than 64 deep",
       [&](Parts& p) {
         job(p)->set_spec_json(Nested(500'000));
         job(p)->set_key(Sha256Hex(job(p)->spec_json()));
       }},
      {"not JSON", [&](Parts& p) { job(p)->mutable_attempts(0)->set_environment_json("{"); }},
      {"not JSON", [&](Parts& p) { job(p)->mutable_attempts(0)->set_environment_json("[]"); }},
      {"not JSON",
       [&](Parts& p) { job(p)->mutable_attempts(0)->set_environment_json(Nested(65)); }},
      {"not JSON", [&](Parts& p) { job(p)->mutable_attempts(0)->set_analyses_json(Nested(2000)); }},
      {"not a JSON object", [&](Parts& p) { job(p)->set_execution_json("';--"); }},
      {"not a JSON object", [&](Parts& p) { job(p)->set_execution_json("[1]"); }},
      {"not a JSON object", [&](Parts& p) { job(p)->set_execution_json(Nested(2001)); }},
      {"cannot be: execution: \"threads\" is -4; allowed: an integer from 1 to 1024",
       [&](Parts& p) {
         job(p)->set_execution_json(R"({"threads":-4,"micro_batch":0,"packing":1})");
       }},
      {"cannot be: end: \"wall_seconds\" is -5; allowed: a number from 0 to 1e+09",
       [&](Parts& p) { job(p)->set_wall_seconds(-5); }},
      {"\"wall_seconds\" is inf",
       [&](Parts& p) { job(p)->set_wall_seconds(std::numeric_limits<double>::infinity()); }},
      {"epoch 1: \"test_loss\" is -1", [&](Parts& p) { epoch(p, 1)->set_test_loss(-1); }},
      {"epoch 1: \"test_total\" is 96; allowed: 97, as the job's test examples",
       [&](Parts& p) { epoch(p, 1)->set_test_total(96); }},
      {"\"total\" is 98; allowed: 97, as the examples that were asked for",
       [&](Parts& p) { matrix(p)->set_total(98); }},
      {"attempt 9 of 1", [&](Parts& p) { p[2].mutable_analysis()->set_attempt(9); }},
      {"\"lost\" is 90", [&](Parts& p) { matrix(p)->set_lost(1, 90); }},
      {"its parameters are not a JSON object",
       [&](Parts& p) { matrix(p)->set_parameters_json("{"); }},
      {"attempt 0 of 1", [&](Parts& p) { p[3].mutable_file()->set_attempt(0); }},
      {"sha256 must be", [&](Parts& p) { p[3].mutable_file()->set_sha256("../../etc/passwd"); }},
      {"file weights.safetensors: \"bytes\" is 300001; the stored file has 300000",
       [&](Parts& p) { p[3].mutable_file()->set_bytes(300'001); }},
      {"name of a file", [&](Parts& p) { p[3].mutable_file()->clear_name(); }},
      {"the name of a file is \"../../x\"; allowed: 1 to 256 bytes without",
       [&](Parts& p) { p[3].mutable_file()->set_name("../../x"); }},
      {"the name of a file is \"a\\nb\"", [&](Parts& p) { p[3].mutable_file()->set_name("a\nb"); }},
      {"after the end", [&](Parts& p) { p.push_back(p[1]); }},
      {"comes first", [&](Parts& p) { p.erase(p.begin()); }},
      {"comes first", [&](Parts& p) { p.insert(p.begin(), p[0]); }},
      {"before the file", [&](Parts& p) { p.erase(p.begin() + 3); }},
  };
  for (const Case& one : cases) {
    Parts parts = PartsOf(jobs_[0].job_id);
    one.spoil(parts);
    const grpc::Status status = Send(parts);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << one.words;
    EXPECT_THAT(status.error_message(), HasSubstr(one.words));
    EXPECT_EQ(JobsHere(), 0) << one.words;
  }
  EXPECT_EQ(Import(jobs_[0].job_id).verdict(), v1::IMPORT_VERDICT_NEW);
  ExpectSound();
}

TEST_F(ImportTest, OnlyWorkersThatAttemptsNameCome) {
  Parts parts = PartsOf(jobs_[0].job_id);
  v1::ImportedWorker& other = *parts[0].mutable_job()->add_workers();
  other = parts[0].job().workers(0);
  other.set_worker_id("nobody");
  const grpc::Status status = Send(parts);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(results_->ListWorkers(Context().get(), {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).worker_id(), parts[0].job().workers(0).worker_id());
}

TEST_F(ImportTest, ASweepThatCouldNotBeSubmittedHereIsRefused) {
  Import(jobs_[0].job_id);
  Import(jobs_[1].job_id);
  struct Case {
    const char* words;
    std::function<void(v1::ImportedSweep&)> spoil;
  };
  const std::vector<Case> cases = {
      {"name \"2\" must not be a number", [](auto& s) { s.set_name("2"); }},
      {"pelab sweeps rename", [](auto& s) { s.set_name("2"); }},
      {"name \"x\\x1b[31m\" must be 1 to 100 letters", [](auto& s) { s.set_name("x\x1b[31m"); }},
      {"name \"\" must be", [](auto& s) { s.clear_name(); }},
      {"token of an imported sweep", [](auto& s) { s.clear_token(); }},
      {"token of an imported sweep", [](auto& s) { s.set_token("token-s"); }},
      {"a file name that has the character \\n", [](auto& s) { s.set_file_name("a\nb"); }},
      {"a document that has", [](auto& s) { s.set_document(std::string((1 << 20) + 1, 'x')); }},
      {"not JSON", [](auto& s) { s.set_overrides_json("\xEF\xBB\xBF[]"); }},
      {"priority 5000 is out of range", [](auto& s) { s.set_priority(5000); }},
      {"cells; at most 1000000", [](auto& s) { s.set_cells(1'000'001); }},
      {"a time of submission that is -1 ms", [](auto& s) { s.set_created_at_ms(-1); }},
      {"the trace \"x\" or spans", [](auto& s) { s.set_trace_id("x"); }},
      {"not ids of W3C Trace Context", [](auto& s) { s.set_span_id("x"); }},
      {"the trace \"\" or spans",
       [](auto& s) {
         s.clear_trace_id();
         s.set_span_id(kSpan);
       }},
  };
  for (const Case& one : cases) {
    v1::ImportedSweep sweep = there_->Sweeps()->front().sweep;
    one.spoil(sweep);
    EXPECT_THAT(Refused(sweep).error_message(), HasSubstr(one.words));
  }
  v1::ListSweepsResponse sweeps;
  ASSERT_TRUE(sweeps_->ListSweeps(Context().get(), {}, &sweeps).ok());
  EXPECT_EQ(sweeps.sweeps_size(), 0);
  EXPECT_TRUE(ImportSweep().finished());
  // A token stands for one document.
  v1::ImportedSweep other = there_->Sweeps()->front().sweep;
  other.set_document("name: s\n");
  EXPECT_THAT(Refused(other).error_message(), HasSubstr("which has another document"));
  ExpectSound();
}

TEST_F(ImportTest, TheQuotaIsRespected) {
  options_.artifact_quota = weights_.size() - 1;
  ServeAnother();
  const grpc::Status status = Send(PartsOf(jobs_[0].job_id));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("quota"));
  EXPECT_EQ(JobsHere(), 0);
  EXPECT_EQ(Import(jobs_[1].job_id).verdict(), v1::IMPORT_VERDICT_NEW);  // has no file
  ExpectSound();
}

TEST_F(ImportTest, WhatIsBeingTrainedHereStaysAndWhatFailedHereIsMadeGood) {
  Submit(Document("mine", "[0]", kEpochs), "mine");
  const std::string hash = *there_->HashOfCurve(jobs_[0].job_id);
  EXPECT_EQ(Check(jobs_[0].key, hash), v1::IMPORT_VERDICT_IN_FLIGHT);
  EXPECT_EQ(Import(jobs_[0].job_id).verdict(), v1::IMPORT_VERDICT_IN_FLIGHT);
  v1::CancelRequest request;
  request.mutable_sweep()->set_sweep("mine");
  v1::CancelResponse response;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), request, &response).ok());
  EXPECT_EQ(Check(jobs_[0].key, hash), v1::IMPORT_VERDICT_NEW);
  const v1::ImportJobResponse imported = Import(jobs_[0].job_id);
  EXPECT_EQ(imported.verdict(), v1::IMPORT_VERDICT_NEW);
  EXPECT_EQ(imported.generation(), 2);
  // The cancelled sweep shows the imported job, and a submission finds it.
  int trained = 0;
  const v1::ListJobsResponse mine = Jobs("mine");
  for (const v1::JobRow& job : mine.jobs()) trained += job.trained() ? 1 : 0;
  EXPECT_EQ(trained, 1);
  EXPECT_EQ(Submit(Document("again", "[0]", kEpochs), "again").counts().stored(), 1);
  ExpectSound();
}

TEST_F(ImportTest, ASweepIsCancelledUntilItIsWhole) {
  EXPECT_EQ(ImportSweep().sweep_id(), 0);  // none of its jobs is here
  Import(jobs_[0].job_id);
  const v1::ImportSweepResponse part = ImportSweep();
  EXPECT_TRUE(part.changed());
  EXPECT_FALSE(part.finished());
  EXPECT_EQ(part.jobs(), 1);
  EXPECT_EQ(part.missing(), 1);
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_CANCELLED);
  EXPECT_FALSE(ImportSweep().changed());
  ExpectSound();
  Import(jobs_[1].job_id);
  ImportSweep(/*end=*/false);  // breaks off: the imported jobs do not finish the sweep
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_CANCELLED);
  ExpectSound();
  EXPECT_TRUE(ImportSweep().finished());
  const v1::Sweep whole = GetSweep("s");
  EXPECT_EQ(whole.state(), v1::SWEEP_STATE_FINISHED);
  EXPECT_EQ(whole.jobs().succeeded(), 2);
  EXPECT_EQ(whole.document(), Document("s", "[0]", kEpochs));
  EXPECT_FALSE(ImportSweep().changed());
  ExpectSound();

  // It can be extended like any other sweep.
  v1::ExtendRequest request;
  request.mutable_sweep()->set_sweep("s");
  request.set_seeds("1");
  v1::ExtendResponse response;
  const grpc::Status status = sweeps_->Extend(Context().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(AwaitSweep("s", [](const auto& s) { return s.jobs().queued() == 2; }).state(),
            v1::SWEEP_STATE_ACTIVE);
  ExpectSound();
}

}  // namespace
}  // namespace pelab
