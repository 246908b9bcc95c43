// Files that documents name: sent, checked, kept as long as they are needed, and given to workers.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <zip.h>

#include <atomic>
#include <fstream>
#include <functional>

#include "core/db/backup/backup.h"
#include "core/db/check/check.h"
#include "core/db/import/import_reader.h"
#include "core/experiment/declaration.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "pelab/v1/transfer.grpc.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDeclaration[] =
    R"({"format":1,"kind":"encoding","name":"decay","methods":["distance_bias"],"options":[]})";

// The system's clock, whose wall time a test moves.
class ShiftedClock final : public Clock {
 public:
  absl::Duration Monotonic() const override { return SystemClock::Instance().Monotonic(); }
  absl::Time Wall() const override {
    return SystemClock::Instance().Wall() + absl::Hours(hours_.load());
  }
  void AdvanceHours(int hours) { hours_ += hours; }

 private:
  std::atomic<int> hours_{0};
};

class FilesTest : public CoordinatorTest {
 protected:
  FilesTest() { options_.clock = &clock_; }
  ~FilesTest() override { coordinator_.reset(); }  // before the clock

  // The bytes of a TorchScript archive that declares an encoding. `code` tells files apart.
  std::string Encoding(const std::string& code, const std::string& declaration = kDeclaration) {
    const std::string path = directory_ + "/made.pt";
    int error = 0;
    zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
    const auto add = [&](const char* name, const std::string& text) {
      zip_file_add(archive, name, zip_source_buffer(archive, text.data(), text.size(), 0), 0);
    };
    add("mine/code/__torch__.py", code);
    if (!declaration.empty()) add("mine/extra/pelab.json", declaration);
    EXPECT_EQ(zip_close(archive), 0);
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static v1::PutFileRequest Header(const std::string& sha256, std::uint64_t bytes) {
    v1::PutFileRequest request;
    request.mutable_header()->set_sha256(sha256);
    request.mutable_header()->set_bytes(bytes);
    return request;
  }
  static v1::PutFileRequest HeaderOf(const std::string& data) {
    return Header(Sha256Hex(data), data.size());
  }
  static v1::PutFileRequest Chunk(std::string data) {
    v1::PutFileRequest request;
    request.set_chunk(std::move(data));
    return request;
  }
  grpc::Status Send(const std::vector<v1::PutFileRequest>& parts,
                    v1::PutFileResponse* response = nullptr) {
    v1::PutFileResponse ignored;
    const auto context = Context();
    const auto writer = sweeps_->PutFile(context.get(), response != nullptr ? response : &ignored);
    for (const v1::PutFileRequest& part : parts) {
      if (!writer->Write(part)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
  // Sends the file and returns whether it was there already.
  bool PutFile(const std::string& data) {
    v1::PutFileResponse response;
    const std::size_t half = data.size() / 2;
    const grpc::Status status =
        Send({HeaderOf(data), Chunk(data.substr(0, half)), Chunk(data.substr(half))}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.already_there();
  }

  static std::string OwnDocument(const std::string& name) {
    return absl::StrCat("name: ", name,
                        "\nprotocol: clean\npe: [{name: own, file: mine.pt}]\n"
                        "task: {name: distance, train_examples: 99, test_examples: 97}\nseed: [0]\n"
                        "model: {d_model: 8, d_ff: 16, heads: 2, layers: 2}\n"
                        "train: {epochs: 2}\nanalyses: [head_ablation]\n");
  }
  static v1::SubmitRequest OwnRequest(const std::string& name, const std::string& data) {
    auto declared = experiment::ParseOwnEncoding(kDeclaration);
    EXPECT_EQ(declared.problem, "");
    declared.encoding.sha256 = Sha256Hex(data);
    declared.encoding.bytes = data.size();
    v1::SubmitRequest request;
    request.set_document(OwnDocument(name));
    request.set_file_name("test.yaml");
    request.set_client_token(name);
    v1::Override& override = *request.add_overrides();
    override.set_field("file:mine.pt");
    override.set_value(experiment::ToJson(declared.encoding));
    return request;
  }
  grpc::Status SubmitOwn(const std::string& name, const std::string& data) {
    v1::SubmitResponse response;
    return sweeps_->Submit(Context().get(), OwnRequest(name, data), &response);
  }
  void ExpectSubmitted(const std::string& name, const std::string& data) {
    const grpc::Status status = SubmitOwn(name, data);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  std::string PathOf(const std::string& data) {
    const std::string sha256 = Sha256Hex(data);
    return absl::StrCat(options_.database, ".artifacts/", sha256.substr(0, 2), "/", sha256);
  }
  bool Stored(const std::string& data) { return std::filesystem::exists(PathOf(data)); }
  int Rows(const std::string& data) {
    SQLite::Database db(options_.database, SQLite::OPEN_READONLY, 1000);
    return db.execAndGet("SELECT count(*) FROM files WHERE sha256 = '" + Sha256Hex(data) + "'")
        .getInt();
  }
  void AwaitGone(const std::string& data) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Stored(data) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_FALSE(Stored(data));
    EXPECT_EQ(Rows(data), 0);
  }
  static std::vector<std::string> ProblemsOf(const std::string& database) {
    const auto checks = db::CheckDatabase(database);
    EXPECT_TRUE(checks.ok()) << checks.status();
    std::vector<std::string> problems;
    for (const db::Check& check : *checks) {
      problems.insert(problems.end(), check.problems.begin(), check.problems.end());
    }
    return problems;
  }
  // Trains the only job of the sweep, without keeping its weights.
  void Train(const std::string& sweep) {
    FakeWorker worker(channel_, "w1", 1);
    Script script(worker.AwaitAssignment());
    worker.Send(script.Whole(2));
    AwaitSweep(sweep, [](const v1::Sweep& row) { return row.state() == v1::SWEEP_STATE_FINISHED; });
    worker.Leave();
  }

  ShiftedClock clock_;
};

TEST_F(FilesTest, IsStoredOnceAndServed) {
  const std::string data = Encoding("one");
  EXPECT_FALSE(PutFile(data));
  EXPECT_TRUE(Stored(data));
  EXPECT_EQ(Rows(data), 1);
  EXPECT_EQ(FileOf(Sha256Hex(data)), data);
  EXPECT_TRUE(PutFile(data));
  v1::PutFileResponse response;
  ASSERT_TRUE(Send({HeaderOf(data)}, &response).ok()) << "the header is enough";
  EXPECT_TRUE(response.already_there());
  std::ofstream(PathOf(data), std::ios::binary) << "damaged";
  EXPECT_FALSE(PutFile(data)) << "what is damaged is replaced";
  EXPECT_EQ(FileOf(Sha256Hex(data)), data);
  coordinator_.reset();
  EXPECT_THAT(ProblemsOf(options_.database), IsEmpty());
}

TEST_F(FilesTest, WhatIsNotAsItsHeaderSaysIsRefused) {
  const std::string data = Encoding("one");
  std::string other = data;
  other.back() ^= 1;
  const std::string text = "no archive at all";
  const std::string bare = Encoding("bare", "");
  const std::string large((1 << 20) + 1, 'x');
  const std::uint64_t too_many = experiment::kMaxTaskBytes + 1;
  struct Case {
    std::vector<v1::PutFileRequest> parts;
    const char* said;
  };
  for (const Case& one : std::vector<Case>{
           {{}, "the first message of an upload must be its header"},
           {{Chunk(data)}, "the first message of an upload must be its header"},
           {{Header("../x", 5), Chunk("12345")}, "must be 64 lower-case hexadecimal digits"},
           {{Header(Sha256Hex(data), 0)}, "a file has 0 bytes; allowed: 1 to 1073741824"},
           {{Header(Sha256Hex(data), too_many)}, "a file has 1073741825 bytes; allowed: 1 to"},
           {{HeaderOf(data), Chunk(other)}, "the upload's SHA-256 is "},
           {{HeaderOf(data), Chunk(data.substr(1))}, " were announced"},
           {{HeaderOf(data)}, "the upload has 0 bytes"},
           {{HeaderOf(data), Chunk(data), Chunk("x")}, "longer than its announced "},
           {{HeaderOf(data), HeaderOf(data)}, "an upload has one header, then chunks"},
           {{HeaderOf(large), Chunk(large)}, "a chunk of a file has at most 1048576 bytes"},
           {{HeaderOf(text), Chunk(text)},
            "this is neither a TorchScript nor a safetensors file: "},
           {{HeaderOf(bare), Chunk(bare)}, "the TorchScript file has no declaration"}}) {
    const grpc::Status status = Send(one.parts);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << one.said;
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr(one.said), Not(HasSubstr(directory_))));
  }
  EXPECT_FALSE(Stored(data));
  EXPECT_EQ(Rows(data) + Rows(text) + Rows(bare), 0);
}

TEST_F(FilesTest, AnUploadThatBrokeOffGoesOn) {
  const std::string data = Encoding("one");
  const std::size_t half = data.size() / 2;
  const auto ask = [&] {
    v1::PutFileRequest request = HeaderOf(data);
    request.mutable_header()->set_ask(true);
    v1::PutFileResponse response;
    EXPECT_TRUE(Send({request}, &response).ok());
    return response;
  };
  const auto from = [&](std::size_t offset) {
    v1::PutFileRequest request = HeaderOf(data);
    request.mutable_header()->set_offset(offset);
    return request;
  };
  EXPECT_EQ(ask().kept(), 0u);
  EXPECT_THAT(Send({HeaderOf(data), Chunk(data.substr(0, half))}).error_message(),
              HasSubstr(" were announced"));
  EXPECT_FALSE(Send({HeaderOf(data), Chunk(data.substr(0, 1))}).ok());
  EXPECT_EQ(ask().kept(), half) << "the longer one is kept";
  EXPECT_FALSE(ask().already_there());
  const grpc::Status beyond = Send({from(half + 1), Chunk(data.substr(half + 1))});
  EXPECT_EQ(beyond.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(beyond.error_message(), HasSubstr(std::to_string(half) + " bytes of this file"));
  EXPECT_TRUE(Send({from(half - 1), Chunk(data.substr(half - 1))}).ok());
  EXPECT_TRUE(ask().already_there());
  EXPECT_EQ(ask().kept(), 0u);
  EXPECT_EQ(FileOf(Sha256Hex(data)), data);
  EXPECT_EQ(Rows(data), 1);
}

// A client can break off an upload of other bytes than those of the hash. The next upload of that
// hash fails, and the one after it stores the right bytes.
TEST_F(FilesTest, OtherBytesThatWereKeptAreFound) {
  const std::string data = Encoding("one");
  std::string other = data;
  other.front() ^= 1;
  const std::size_t half = data.size() / 2;
  EXPECT_FALSE(Send({HeaderOf(data), Chunk(other.substr(0, half))}).ok());
  v1::PutFileRequest rest = HeaderOf(data);
  rest.mutable_header()->set_offset(half);
  EXPECT_THAT(Send({rest, Chunk(data.substr(half))}).error_message(),
              HasSubstr("the upload's SHA-256 is "));
  EXPECT_FALSE(Stored(data));
  EXPECT_FALSE(Send({rest, Chunk(data.substr(half))}).ok()) << "nothing is kept any more";
  EXPECT_FALSE(PutFile(data));
  EXPECT_EQ(FileOf(Sha256Hex(data)), data);
}

TEST_F(FilesTest, DocumentsMayOnlyNameStoredFiles) {
  const std::string data = Encoding("one");
  const v1::SubmitRequest submit = OwnRequest("s", data);
  v1::PreviewRequest preview;
  preview.set_document(submit.document());
  *preview.mutable_overrides() = submit.overrides();
  v1::PreviewResponse previewed;
  ASSERT_TRUE(sweeps_->Preview(Context().get(), preview, &previewed).ok());
  EXPECT_EQ(previewed.counts().total(), 1u);
  const grpc::Status refused = SubmitOwn("s", data);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(),
              HasSubstr(absl::StrCat("the file mine.pt (SHA-256 ", Sha256Hex(data),
                                     ") is not stored here; pelab submit sends it first")));
  PutFile(data);
  std::filesystem::rename(PathOf(data), directory_ + "/away");
  EXPECT_EQ(SubmitOwn("s", data).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  std::filesystem::rename(directory_ + "/away", PathOf(data));
  ExpectSubmitted("s", data);
  ExpectSubmitted("s", data);  // the same token
}

TEST_F(FilesTest, WhatADocumentSaysOfAFileIsCompared) {
  const std::string data = Encoding("one");
  PutFile(data);
  v1::SubmitRequest request = OwnRequest("s", data);
  auto declared = experiment::ParseOwnEncoding(request.overrides(0).value()).encoding;
  declared.causal_only = !declared.causal_only;
  request.mutable_overrides(0)->set_value(experiment::ToJson(declared));
  v1::SubmitResponse response;
  const grpc::Status refused = sweeps_->Submit(Context().get(), request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("what the submission says of mine.pt is not what "
                                                 "the file with this SHA-256 declares"));
  ExpectSubmitted("s", data);
}

TEST_F(FilesTest, AnotherSubmissionSaysWhatDiffers) {
  const std::string one = Encoding("one"), two = Encoding("two");
  PutFile(one);
  PutFile(two);
  ExpectSubmitted("s", one);
  const auto said = [&](const std::function<void(v1::SubmitRequest&)>& change) {
    v1::SubmitRequest request = OwnRequest("s", two);
    request.set_client_token("other");
    change(request);
    v1::SubmitResponse response;
    return sweeps_->Submit(Context().get(), request, &response).error_message();
  };
  EXPECT_THAT(said([](v1::SubmitRequest&) {}),
              HasSubstr(" was submitted with other content of mine.pt; nothing was stored"));
  EXPECT_THAT(said([](v1::SubmitRequest& request) {
                request.set_document(request.document() + "\n");
                request.add_overrides()->set_field("seed");
                request.mutable_overrides(1)->set_value("1");
              }),
              HasSubstr(" was submitted with another document and other content of mine.pt and "
                        "other overrides; nothing"));
}

TEST_F(FilesTest, AssignmentsNameThem) {
  const std::string data = Encoding("one");
  PutFile(data);
  ExpectSubmitted("s", data);
  {
    FakeWorker worker(channel_, "w1", 1, {}, R"({"pes":[{"name":"rope","version":1}]})");
    const v1::Sweep waits = AwaitSweep("s", [](const v1::Sweep& sweep) {
      return sweep.waiting_reason().find("pe own") != std::string::npos;
    });
    EXPECT_THAT(waits.waiting_reason(), HasSubstr("its trainer has no pe own"));
    worker.Leave();
  }
  FakeWorker worker(channel_, "w2", 1, {}, R"({"pes":[{"name":"own","version":1}]})");
  const v1::Assignment assignment = worker.AwaitAssignment();
  EXPECT_EQ(assignment.pe(), "own");
  ASSERT_EQ(assignment.files_size(), 1);
  EXPECT_EQ(assignment.files(0).sha256(), Sha256Hex(data));
  EXPECT_EQ(assignment.files(0).bytes(), data.size());
  EXPECT_EQ(FileOf(assignment.files(0).sha256()), data);
}

TEST_F(FilesTest, StaysADayAndAsLongAsAJobNamesIt) {
  const std::string named = Encoding("named");
  const std::string unnamed = Encoding("unnamed");
  coordinator_.reset();
  options_.artifact_grace = absl::Milliseconds(200);  // the collector walks all the time
  Start();
  PutFile(named);
  PutFile(unnamed);
  ExpectSubmitted("s", named);
  absl::SleepFor(absl::Milliseconds(600));
  EXPECT_TRUE(Stored(unnamed));
  clock_.AdvanceHours(23);
  EXPECT_TRUE(PutFile(unnamed)) << "its day begins anew";
  clock_.AdvanceHours(23);
  absl::SleepFor(absl::Milliseconds(600));
  EXPECT_TRUE(Stored(unnamed));
  clock_.AdvanceHours(2);
  AwaitGone(unnamed);
  EXPECT_TRUE(Stored(named));
  EXPECT_EQ(Rows(named), 1);
  v1::CancelRequest cancel;
  cancel.mutable_sweep()->set_sweep("s");
  v1::CancelResponse cancelled;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), cancel, &cancelled).ok());
  v1::DeleteRequest request;
  request.mutable_sweep()->set_sweep("s");
  v1::DeleteResponse response;
  const grpc::Status deleted = sweeps_->Delete(Context().get(), request, &response);
  ASSERT_TRUE(deleted.ok()) << deleted.error_message();
  AwaitGone(named);
}

TEST_F(FilesTest, BackupsHaveThemAndLossesAreFound) {
  const std::string data = Encoding("one");
  PutFile(data);
  ExpectSubmitted("s", data);
  const std::string copy = directory_ + "/copy.db";
  coordinator_.reset();
  const auto report = db::Backup(options_.database, copy);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->artifacts, 1u);
  EXPECT_THAT(ProblemsOf(copy), IsEmpty());
  EXPECT_EQ(db::ReadInfo(copy)->artifacts, 1);
  std::filesystem::remove_all(copy + ".artifacts");
  EXPECT_THAT(ProblemsOf(copy), testing::ElementsAre(HasSubstr("is missing")));
  SQLite::Database(copy, SQLite::OPEN_READWRITE).exec("DELETE FROM files");
  EXPECT_THAT(ProblemsOf(copy),
              testing::ElementsAre(absl::StrCat("configuration 1: no file ", Sha256Hex(data))));
}

TEST_F(FilesTest, ImportsBringThem) {
  const std::string data = Encoding("one");
  PutFile(data);
  ExpectSubmitted("s", data);
  Train("s");
  const std::string there = options_.database;
  coordinator_.reset();
  options_.database = directory_ + "/here.db";
  Start();
  const db::ExportedJob job = *(*db::ImportReader::Open(there))->ReadJob(1);
  ASSERT_EQ(job.files.size(), 1u);
  EXPECT_EQ(job.files[0].attempt(), 0);
  const auto transfer = v1::Transfer::NewStub(channel_);
  const auto import = [&](const std::string& bytes) {
    v1::ImportJobResponse response;
    const auto context = Context();
    const auto writer = transfer->ImportJob(context.get(), &response);
    v1::ImportJobPart part;
    *part.mutable_job() = job.job;
    writer->Write(part);
    for (const v1::Epoch& epoch : job.epochs) *part.mutable_epochs()->add_epochs() = epoch;
    writer->Write(part);
    for (const v1::ImportedAnalysis& analysis : job.analyses) {
      *part.mutable_analysis() = analysis;
      writer->Write(part);
    }
    *part.mutable_file() = job.files[0];
    part.mutable_file()->set_sha256(Sha256Hex(bytes));
    part.mutable_file()->set_bytes(bytes.size());
    writer->Write(part);
    part.set_data(bytes);
    writer->Write(part);
    part.set_end(true);
    writer->Write(part);
    writer->WritesDone();
    return writer->Finish();
  };
  EXPECT_THAT(import("another").error_message(), HasSubstr("a file is of attempt 0 of 1"));
  const grpc::Status imported = import(data);
  ASSERT_TRUE(imported.ok()) << imported.error_message();
  EXPECT_EQ(Rows(data), 1);
  EXPECT_EQ(FileOf(Sha256Hex(data)), data);
  coordinator_.reset();
  EXPECT_THAT(ProblemsOf(options_.database), IsEmpty());
}

}  // namespace
}  // namespace pelab
