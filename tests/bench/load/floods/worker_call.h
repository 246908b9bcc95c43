// A worker's session that an attacker holds.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "pelab/v1/fleet.grpc.pb.h"

namespace pelab::load {

// One thread may write while another one reads.
class WorkerCall {
 public:
  // Says hello as the worker `id`.
  WorkerCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& id, int slots)
      : stub_(v1::Fleet::NewStub(channel)), stream_(stub_->Session(&context_)) {
    v1::WorkerMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol(1);
    hello->set_worker_id(id);
    hello->set_host("flood");
    hello->set_version("1");
    for (int i = 0; i < slots; ++i) {
      v1::Slot* slot = hello->add_slots();
      slot->set_slot(i);
      slot->set_device("cpu");
      slot->set_device_kind("cpu");
    }
    stream_->Write(message);
  }
  // Breaks the session, if it has not ended.
  ~WorkerCall() {
    context_.TryCancel();
    v1::CoordinatorMessage ignored;
    while (stream_->Read(&ignored)) continue;
    stream_->Finish();
  }
  WorkerCall(const WorkerCall&) = delete;
  WorkerCall& operator=(const WorkerCall&) = delete;

  // False once the session has ended.
  bool Write(const v1::WorkerMessage& message) { return stream_->Write(message); }
  bool Read(v1::CoordinatorMessage& message) { return stream_->Read(&message); }
  // Reads until an assignment comes, and reports that it has started. nullopt if the session ends.
  std::optional<v1::Assignment> Begin() {
    v1::CoordinatorMessage message;
    do {
      if (!Read(message)) return std::nullopt;
    } while (!message.has_assignment());
    v1::WorkerMessage started;
    v1::Event* event = started.mutable_events()->add_events();
    event->set_attempt_id(message.assignment().attempt_id());
    event->set_token(message.assignment().token());
    event->set_sequence(1);
    event->mutable_started()->set_epochs(3);
    event->mutable_started()->set_environment_json("{}");
    event->mutable_started()->mutable_execution()->set_threads(1);
    event->mutable_started()->mutable_execution()->set_packing(1);
    if (!Write(started)) return std::nullopt;
    return message.assignment();
  }
  bool Beat(const v1::Assignment& assignment) {
    v1::WorkerMessage message;
    v1::HeldAttempt* held = message.mutable_heartbeat()->add_held();
    held->set_attempt_id(assignment.attempt_id());
    held->set_token(assignment.token());
    held->set_slot(assignment.slot());
    return Write(message);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
};

}  // namespace pelab::load
