// Workers of earlier releases. tests/contract/sessions has what such a worker and its coordinator
// said to each other, recorded from the real programs by record.py; here the worker's messages are
// played to this coordinator.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using Json = nlohmann::json;

template <typename Message>
Message FromJson(const Json& json) {
  Message message;
  const auto status = google::protobuf::util::JsonStringToMessage(json.dump(), &message);
  EXPECT_TRUE(status.ok()) << status.ToString() << ": " << json.dump().substr(0, 200);
  return message;
}

std::vector<Json> Recorded(const std::string& name) {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/tests/contract/sessions/" + name);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  EXPECT_FALSE(lines.empty()) << name << " cannot be read";
  return lines;
}

class ReleasesTest : public CoordinatorTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>;

  // Plays a whole session. Attempts have other ids and tokens than when it was recorded.
  void Play(const std::vector<Json>& lines) {
    Submit(lines.front().at("document").get<std::string>(), "a");
    context_ = Context();
    stream_ = fleet_->Session(context_.get());
    for (const Json& line : lines) {
      if (line.at("from") == "worker") PlayWorker(line.at("message"));
      if (line.at("from") == "coordinator") PlayCoordinator(line.at("message"));
      if (HasFatalFailure()) return;
    }
    stream_->WritesDone();
    v1::CoordinatorMessage rest;
    while (stream_->Read(&rest)) {
    }
    const grpc::Status end = stream_->Finish();
    EXPECT_TRUE(end.ok()) << end.error_message();
  }

  void PlayWorker(const Json& json) {
    if (json.contains("header") || json.contains("chunk")) {
      upload_.push_back(FromJson<v1::PutArtifactRequest>(json));
      if (upload_.back().has_header()) Translate(*upload_.back().mutable_header());
      return;
    }
    auto message = FromJson<v1::WorkerMessage>(json);
    if (message.has_events()) {
      for (v1::Event& event : *message.mutable_events()->mutable_events()) {
        events_.push_back(event);
        Translate(event);
      }
    }
    if (message.has_heartbeat()) {
      for (v1::HeldAttempt& held : *message.mutable_heartbeat()->mutable_held()) Translate(held);
    }
    if (message.has_log()) Translate(*message.mutable_log());
    ASSERT_TRUE(stream_->Write(message));
  }

  void PlayCoordinator(const Json& json) {
    if (!upload_.empty()) return Upload();
    const auto recorded = FromJson<v1::CoordinatorMessage>(json);
    if (recorded.has_welcome()) {
      EXPECT_EQ(Await(&v1::CoordinatorMessage::has_welcome).welcome().protocol(),
                recorded.welcome().protocol());
    }
    if (recorded.has_assignment()) {
      const v1::Assignment now = Await(&v1::CoordinatorMessage::has_assignment).assignment();
      EXPECT_EQ(now.key(), recorded.assignment().key()) << "keys never change";
      EXPECT_EQ(now.spec_json(), recorded.assignment().spec_json());
      attempts_[recorded.assignment().attempt_id()] = now;
    }
    for (const v1::Ack& ack : recorded.acks().acks()) {
      AwaitAck(attempts_[ack.attempt_id()].attempt_id(), ack.sequence());
    }
  }

  void Upload() {
    v1::PutArtifactResponse response;
    const auto context = Context();
    const auto writer = fleet_->PutArtifact(context.get(), &response);
    for (const v1::PutArtifactRequest& part : upload_) writer->Write(part);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    upload_.clear();
  }

  template <typename Message>
  void Translate(Message& message) {
    const v1::Assignment& now = attempts_[message.attempt_id()];
    message.set_attempt_id(now.attempt_id());
    message.set_token(now.token());
  }

  v1::CoordinatorMessage Await(bool (v1::CoordinatorMessage::*wanted)() const) {
    v1::CoordinatorMessage message;
    // The next assignment may come before an acknowledgement that is waited for.
    if (!early_.empty() && (early_.front().*wanted)()) {
      message = early_.front();
      early_.pop_front();
      return message;
    }
    while (stream_->Read(&message)) {
      for (const v1::Ack& ack : message.acks().acks()) acked_[ack.attempt_id()] = ack.sequence();
      if ((message.*wanted)()) return message;
      if (message.has_assignment()) early_.push_back(message);
    }
    ADD_FAILURE() << "the coordinator ended the session";
    return {};
  }
  void AwaitAck(std::int64_t attempt, std::uint64_t sequence) {
    while (acked_[attempt] < sequence && !HasFailure()) Await(&v1::CoordinatorMessage::has_acks);
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
  std::map<std::int64_t, v1::Assignment> attempts_;  // by the recorded id
  std::map<std::int64_t, std::uint64_t> acked_;
  std::deque<v1::CoordinatorMessage> early_;
  std::vector<v1::PutArtifactRequest> upload_;
  std::vector<v1::Event> events_;  // as recorded
};

TEST_F(ReleasesTest, AWorkerOfProtocolOneTrainsAsItDidThen) {
  Play(Recorded("protocol_1.jsonl"));
  const v1::ListJobsResponse jobs = Jobs("recorded");
  ASSERT_EQ(jobs.jobs_size(), 2);
  std::map<std::string, std::int64_t> job_of;
  for (const v1::JobRow& job : jobs.jobs()) {
    EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.error();
    job_of[job.key()] = job.job_id();
  }
  std::map<std::pair<std::int64_t, int>, v1::CurveRow> curves;
  const v1::ListCurvesResponse stored = Curves("recorded");
  for (const v1::CurveRow& row : stored.rows()) curves[{row.job_id(), row.epoch()}] = row;
  int epochs = 0, artifacts = 0;
  for (const v1::Event& event : events_) {
    if (event.has_epoch()) {
      const v1::Epoch& epoch = event.epoch();
      const std::int64_t job = job_of[attempts_[event.attempt_id()].key()];
      const v1::CurveRow& row = curves[{job, epoch.epoch()}];
      EXPECT_EQ(row.train_loss(), epoch.train_loss());
      EXPECT_EQ(row.test_loss(), epoch.test_loss());
      EXPECT_EQ(row.test_correct(), epoch.test_correct());
      ++epochs;
    }
    if (event.has_artifact()) {
      EXPECT_EQ(FileOf(event.artifact().sha256()).size(), event.artifact().bytes());
      ++artifacts;
    }
  }
  EXPECT_EQ(epochs, 4);
  EXPECT_EQ(artifacts, 2);
  v1::ListAnalysesRequest request;
  request.mutable_filter()->set_sweep("recorded");
  v1::ListAnalysesResponse analyses;
  ASSERT_TRUE(results_->ListAnalyses(Context().get(), request, &analyses).ok());
  EXPECT_EQ(analyses.rows_size(), 4);
}

TEST_F(ReleasesTest, AVersionThatNobodySpeaksIsRefused) {
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_protocol(7);
  hello.mutable_hello()->set_protocol_max(9);
  hello.mutable_hello()->set_worker_id("late");
  hello.mutable_hello()->set_host("h");
  const auto context = Context();
  const auto stream = fleet_->Session(context.get());
  stream->Write(hello);
  v1::CoordinatorMessage message;
  EXPECT_FALSE(stream->Read(&message));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              testing::HasSubstr("the worker speaks protocol 7 to 9 and the coordinator 1 to 2; "
                                 "upgrade the coordinator"));
}

}  // namespace
}  // namespace pelab
