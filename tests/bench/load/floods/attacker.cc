#include "tests/bench/load/floods/attacker.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/shutdown.h"
#include "core/base/status.h"
#include "tests/bench/load/host.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kEndTime = absl::Seconds(10);
constexpr std::uint64_t kAttackerFiles = 4096;

nlohmann::json ToJson(const Tally& tally) {
  return {{"connections", tally.connections.load()},
          {"calls", tally.calls.load()},
          {"refused", tally.refused.load()},
          {"bytes", tally.bytes.load()}};
}

std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 4096> bytes{};
  for (ssize_t got = 0; (got = read(fd, bytes.data(), bytes.size())) > 0;) {
    all.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return all;
}

}  // namespace

void AttackUntilEnded(int argc, char** argv) {
  ShutdownSignal end;
  const Attack* const attack = argc == 5 ? FindAttack(argv[2]) : nullptr;
  if (attack == nullptr) CannotAttack("it needs the name of a flood, a socket and a port");
  if (!AllowOpenFiles(kAttackerFiles)) {
    CannotAttack(absl::StrCat("this user may not open ", kAttackerFiles, " files (ulimit -n)"));
  }
  if (const absl::Status watched = end.WatchParent(STDIN_FILENO); !watched.ok()) {
    CannotAttack(std::string{watched.message()});
  }
  static Tally tally;
  const Target target{.socket = argv[3], .http_port = std::atoi(argv[4])};
  std::thread([attack, target] { attack->run(target, tally); }).detach();
  end.Wait();
  const std::string text = ToJson(tally).dump() + "\n";
  const bool written = write(STDOUT_FILENO, text.data(), text.size()) > 0;
  _exit(written ? 0 : 1);  // threads of the attack go on until here
}

absl::StatusOr<Attacker> Attacker::Start(const Attack& attack, const Target& target) {
  PELAB_ASSIGN_OR_RETURN(const std::string self, SelfPath());
  PELAB_ASSIGN_OR_RETURN(Pipe lifeline, MakePipe());
  PELAB_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  SpawnOptions spawn{
      .argv = {self, kAttackCommand, attack.name, target.socket, absl::StrCat(target.http_port)}};
  spawn.fds = {{lifeline.read.get(), STDIN_FILENO}, {output.write.get(), STDOUT_FILENO}};
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(spawn));
  return Attacker(std::move(process), std::move(lifeline.write), std::move(output.read));
}

absl::StatusOr<nlohmann::json> Attacker::Stop() {
  const ExitStatus status = process_.Stop(kEndTime);
  const std::string text = ReadAll(output_.get());
  nlohmann::json tally = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (status.ok() && tally.is_object()) return tally;
  return absl::InternalError(absl::StrCat("the attacker ", status.ToString()));
}

}  // namespace pelab::load
