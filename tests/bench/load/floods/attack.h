// Attacks on a coordinator, and what each of them counts.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pelab::load {

// The coordinator that is attacked.
struct Target {
  std::string socket;  // path of its Unix socket
  int http_port = 0;   // of its pages on 127.0.0.1
};

// The sweep that is there before an attack. Some of its jobs are still queued.
inline constexpr char kBaseSweep[] = "base";

// The counts of what an attacker has done so far. Thread-safe.
struct Tally {
  std::atomic<std::int64_t> connections{0};  // that were opened
  std::atomic<std::int64_t> calls{0};        // calls, requests or messages that were sent
  std::atomic<std::int64_t> refused{0};      // connections that were closed, calls that failed
  std::atomic<std::int64_t> bytes{0};        // where an attack is about bytes
};

struct Attack {
  std::string name;
  std::string what;  // for people
  // Attacks until the process ends. It may return if it can do nothing more; what it holds stays.
  void (*run)(const Target& target, Tally& tally);
  // The version of gRPC that bounds this attack; empty: pelab does. With an older gRPC its figures
  // are not judged.
  std::string bounded_from;
  // Whether the memory for messages fills up. gRPC then ends calls of any connection, also those of
  // honest clients (docs/security.md).
  bool fills_memory = false;
};

// All attacks, in the order in which they run.
const std::vector<Attack>& Attacks();
// Null if there is none of this name.
const Attack* FindAttack(const std::string& name);

// Attacks on connections and on HTTP/2 (http2_attacks.cc).
void SilentConnections(const Target& target, Tally& tally);
void ConnectAndClose(const Target& target, Tally& tally);
void UnfinishedMessages(const Target& target, Tally& tally);
void UnreadAnswers(const Target& target, Tally& tally);
void RapidReset(const Target& target, Tally& tally);
void EndlessHeaders(const Target& target, Tally& tally);
// Attacks by calls (call_attacks.cc).
void LargestPages(const Target& target, Tally& tally);
void LargePreviews(const Target& target, Tally& tally);
void Submissions(const Target& target, Tally& tally);
void YamlDocuments(const Target& target, Tally& tally);
void JsonDocuments(const Target& target, Tally& tally);
// Attacks by worker sessions (worker_attacks.cc).
void SessionsInALoop(const Target& target, Tally& tally);
void Heartbeats(const Target& target, Tally& tally);
void FalseEvents(const Target& target, Tally& tally);
void LogChunks(const Target& target, Tally& tally);
// Attacks by streams that stay open (stream_attacks.cc).
void StandingUploads(const Target& target, Tally& tally);
void UnreadBackups(const Target& target, Tally& tally);
void Watches(const Target& target, Tally& tally);
// Attacks on the pages (http_attacks.cc).
void HttpRequests(const Target& target, Tally& tally);
void HttpDrips(const Target& target, Tally& tally);

// Runs body(0) to body(threads - 1), each on a thread of its own, and returns when all have.
void OnThreads(int threads, const std::function<void(int)>& body);
// A connection of its own to the coordinator.
std::shared_ptr<grpc::Channel> Dial(const Target& target);
// Ends the attacker because it cannot attack at all.
[[noreturn]] void CannotAttack(const std::string& why);

}  // namespace pelab::load
