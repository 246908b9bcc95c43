// Attacks by calls that cost the coordinator much more than their sender.
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/ids.h"
#include "core/db/read/reader.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "tests/bench/load/floods/attack.h"
#include "tests/bench/load/scenario.h"

namespace pelab::load {
namespace {

constexpr int kCallers = 64;    // connections that call without a pause
constexpr int kSubmitters = 8;  // connections that submit without a pause
constexpr int kDocumentSenders = 8;

void Count(const grpc::Status& status, Tally& tally) {
  ++tally.calls;
  if (!status.ok()) ++tally.refused;
}

std::string Repeat(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() + text.size() <= bytes) all += text;
  return all;
}

// Sends the documents in turn, as Previews.
void SendDocuments(const Target& target, Tally& tally, int senders,
                   const std::vector<std::string>& documents, int max_jobs) {
  OnThreads(senders, [&](int sender) {
    const auto sweeps = v1::Sweeps::NewStub(Dial(target));
    ++tally.connections;
    for (std::size_t i = static_cast<std::size_t>(sender);; ++i) {
      v1::PreviewRequest request;
      request.set_document(documents[i % documents.size()]);
      request.set_max_jobs(max_jobs);
      v1::PreviewResponse response;
      grpc::ClientContext context;
      Count(sweeps->Preview(&context, request, &response), tally);
    }
  });
}

}  // namespace

void LargestPages(const Target& target, Tally& tally) {
  OnThreads(kCallers, [&](int) {
    const auto results = v1::Results::NewStub(Dial(target));
    ++tally.connections;
    while (true) {
      v1::ListJobsRequest request;
      request.mutable_page()->set_limit(db::kMaxPage);
      v1::ListJobsResponse response;
      grpc::ClientContext context;
      Count(results->ListJobs(&context, request, &response), tally);
    }
  });
}

void LargePreviews(const Target& target, Tally& tally) {
  // 50,000 combinations of 20 seeds: as many of both as a sweep may have.
  std::string rates;
  for (int i = 1; i <= 5'000; ++i) absl::StrAppend(&rates, i > 1 ? "," : "", i, "e-6");
  const std::string document = absl::StrCat(
      "name: large\nprotocol: clean\n"
      "pe: [nope, absolute, random, relative, alibi, rope, mla, rope_abs, shaw, xpos]\n"
      "task: {name: distance, train_examples: 99, test_examples: 97}\nseed: 0..19\n"
      "model: {d_model: 32, d_ff: 16, heads: 2, layers: 2}\ntrain: {epochs: 1}\nanalyses: []\n"
      "axes: {train.lr: [",
      rates, "]}\n");
  SendDocuments(target, tally, kCallers, {document}, /*max_jobs=*/10'000);
}

void Submissions(const Target& target, Tally& tally) {
  std::atomic<std::uint64_t> first{1'000'000};
  OnThreads(kSubmitters, [&](int) {
    const auto sweeps = v1::Sweeps::NewStub(Dial(target));
    ++tally.connections;
    while (true) {
      const std::uint64_t seed = first.fetch_add(1'000);
      const std::string name = absl::StrCat("flood-", seed);
      v1::SubmitRequest request;
      request.set_document(Document(name, seed, 1'000, 3));
      request.set_client_token(name);
      v1::SubmitResponse response;
      grpc::ClientContext submitting;
      Count(sweeps->Submit(&submitting, request, &response), tally);
      v1::CancelRequest cancel;
      cancel.mutable_sweep()->set_sweep(name);
      v1::CancelResponse cancelled;
      grpc::ClientContext cancelling;
      Count(sweeps->Cancel(&cancelling, cancel, &cancelled), tally);
    }
  });
}

void YamlDocuments(const Target& target, Tally& tally) {
  constexpr std::size_t kMost = experiment::kMaxDocumentBytes - 1'000;
  std::string ladder;  // one key in another, each a space further in
  for (std::size_t depth = 0; ladder.size() + depth < kMost; ++depth) {
    absl::StrAppend(&ladder, std::string(depth, ' '), "a:\n");
  }
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    absl::StrAppend(&laughs, "a", i, ": &a", i, " [", Repeat(absl::StrCat("*a", i - 1, ","), 50),
                    "]\n");
  }
  const std::vector<std::string> documents = {
      absl::StrCat("name: x\nseed: ", Repeat("[", kMost)),
      absl::StrCat("name: x\nseed: ", Repeat("{a: ", kMost)),
      absl::StrCat("name: x\nseed: [", Repeat("0,", kMost), "]"),
      absl::StrCat("name: x\npe: [", Repeat("rope,", kMost), "]"),
      absl::StrCat("name: \"", Repeat("\\x41", kMost), "\""),
      ladder,
      laughs,
      Repeat("- ", kMost),
      Repeat("? ", kMost),
      Repeat("a: 1\n", kMost),
  };
  SendDocuments(target, tally, kDocumentSenders, documents, /*max_jobs=*/0);
}

void JsonDocuments(const Target& target, Tally& tally) {
  constexpr std::size_t kLarge = 15 << 20;
  const std::vector<std::string> texts = {
      Repeat("[", kLarge), Repeat("{\"a\":", kLarge), absl::StrCat("[", Repeat("0,", kLarge), "0]"),
      absl::StrCat("{\"a\":\"", Repeat("\\u0041", kLarge), "\"}")};
  const std::vector<std::string> conditions = {
      Repeat("(", 1 << 20), Repeat("not ", 1 << 20),
      absl::StrCat(Repeat("pe = rope or ", 1 << 20), "pe = rope"),
      absl::StrCat("pe in (", Repeat("rope, ", 1 << 20), "rope)")};
  OnThreads(kDocumentSenders, [&](int sender) {
    const auto channel = Dial(target);
    const auto sweeps = v1::Sweeps::NewStub(channel);
    const auto results = v1::Results::NewStub(channel);
    ++tally.connections;
    for (std::size_t i = static_cast<std::size_t>(sender);; ++i) {
      v1::AnalyzeRequest analyze;
      analyze.mutable_sweep()->set_sweep(kBaseSweep);
      v1::Analysis* analysis = analyze.add_analyses();
      analysis->set_name("head_ablation");
      analysis->set_version(1);
      analysis->set_parameters_json(texts[i % texts.size()]);
      v1::AnalyzeResponse answer;
      grpc::ClientContext analyzing;
      Count(sweeps->Analyze(&analyzing, analyze, &answer), tally);
      v1::ListJobsRequest list;
      list.mutable_filter()->set_where(conditions[i % conditions.size()]);
      v1::ListJobsResponse jobs;
      grpc::ClientContext listing;
      Count(results->ListJobs(&listing, list, &jobs), tally);
    }
  });
}

}  // namespace pelab::load
