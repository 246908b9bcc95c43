#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "core/rpc/channel.h"
#include "tests/bench/load/floods/attack.h"

namespace pelab::load {

const std::vector<Attack>& Attacks() {
  static const auto& attacks = *new std::vector<Attack>{
      {"silence", "2,000 connections that say nothing", SilentConnections, ""},
      {"connect", "connections that are opened and closed in a loop", ConnectAndClose, ""},
      {"unfinished", "300 calls whose first message of 16 MiB never ends", UnfinishedMessages, "",
       /*fills_memory=*/true},
      {"unread", "1,000 answers that nobody reads", UnreadAnswers, ""},
      {"reset", "calls that are reset at once", RapidReset, "1.60"},
      {"headers", "one call's headers without end, up to 256 MiB", EndlessHeaders, "1.56"},
      {"pages", "ListJobs of the largest page, from 64 connections", LargestPages, ""},
      {"previews", "Preview of a million cells, from 64 connections", LargePreviews, ""},
      {"submit", "sweeps of 1,000 cells that are cancelled at once", Submissions, ""},
      {"yaml", "documents that are deep, long or refer to themselves", YamlDocuments, ""},
      {"json", "deep and large JSON, and long conditions", JsonDocuments, ""},
      {"sessions", "worker sessions that come and go, each with another id", SessionsInALoop, ""},
      {"heartbeats", "heartbeats of one worker without a pause", Heartbeats, ""},
      {"events", "events with false tokens", FalseEvents, ""},
      {"logs", "log output without a pause", LogChunks, ""},
      {"uploads", "1,000 uploads that stand still", StandingUploads, ""},
      {"backups", "backups that nobody reads", UnreadBackups, ""},
      {"watches", "2,000 streams that watch a sweep", Watches, ""},
      {"http", "requests to the pages, from 64 connections", HttpRequests, ""},
      {"drip", "2,000 requests to the pages, each of one byte a second", HttpDrips, ""},
  };
  return attacks;
}

const Attack* FindAttack(const std::string& name) {
  const auto found = std::find_if(Attacks().begin(), Attacks().end(),
                                  [&](const Attack& attack) { return attack.name == name; });
  return found == Attacks().end() ? nullptr : &*found;
}

void OnThreads(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : all) thread.join();
}

std::shared_ptr<grpc::Channel> Dial(const Target& target) {
  auto channel = rpc::CreateChannel({.is_unix = true, .path = target.socket}, {});
  if (!channel.ok()) CannotAttack(std::string{channel.status().message()});
  return *std::move(channel);
}

void CannotAttack(const std::string& why) {
  std::fprintf(stderr, "pelab-load: the attacker cannot attack: %s\n", why.c_str());
  _exit(1);
}

}  // namespace pelab::load
