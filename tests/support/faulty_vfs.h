// A file system for SQLite that lives in memory and fails as disks do. Every file has two images:
// what was written, which the process sees, and what is durable, which a power loss leaves.
//
// What it promises is what POSIX and Linux do, and no more:
//   - A write is seen by later reads at once, and is durable after the next xSync that succeeds.
//   - After an xSync that fails, the pages that were dirty count as clean: they are read as written,
//     but no later xSync makes them durable unless they are written again (fsync on Linux). Some of
//     them may have reached the disk all the same.
//   - The first xSync of a new file also syncs its directory, as SQLite's unix VFS does for journals
//     and WALs. Until some sync of the directory (all files are in one) a new file is gone after a
//     power loss, and one that was deleted is back with its old durable content.
//   - A full disk refuses a write, or takes the front half of it (SQLITE_FULL).
//   - At a power loss any part of what was not synced may have reached the disk, in sectors of 512
//     bytes and in no order: writes can be torn, later ones there and earlier ones not.
//   - Bytes beside those of a write never change (SQLITE_IOCAP_POWERSAFE_OVERWRITE, as on Linux).
//   - A process that is killed leaves everything it wrote, and its locks and shared memory vanish.
//
// Locks and the WAL's shared memory work between the connections of one process. One thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pelab {

class FaultyVfs {
 public:
  // Operations that change a disk; they are counted from 1.
  enum Kind : unsigned { kWrite = 1, kSync = 2, kTruncate = 4, kAny = 7 };

  struct Fault {
    enum How {
      kIoError,  // EIO: nothing is written; a sync loses what was dirty
      kFull,     // ENOSPC: nothing is written
      kShort,    // ENOSPC in the middle: the front half of the write is there
      kCrash,    // the process dies in the middle of it
      kPowerLoss,
    };
    std::uint64_t at = 0;     // the operation's number among those of `kinds`
    std::uint64_t times = 1;  // so many of them fail one after the other
    unsigned kinds = kAny;
    How how = kIoError;
  };

  // Registers itself with SQLite under name(). `seed` decides what of the unsynced survives.
  explicit FaultyVfs(std::uint64_t seed = 1);
  // No connection may be open any more.
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

  const std::string& name() const { return name_; }

  void Set(const Fault& fault) { fault_ = fault; }
  void ClearFault() { fault_.reset(); }
  // How many there were of these kinds.
  std::uint64_t operations(unsigned kinds = kAny) const;
  std::uint64_t failures() const { return failures_; }

  // The process is killed: what is open fails from now on without any effect, and nothing can be
  // opened before Restart.
  void Crash();
  // The same, and of each file only its durable image stays, with a share (0 to 1) of the sectors
  // that were not synced.
  void LosePower(double survivors);
  // A new process.
  void Restart() { down_ = false; }
  bool down() const { return down_; }

  // All files, as they are; Load is for a new VFS, or after a crash.
  struct File;
  struct Image {
    std::map<std::string, std::shared_ptr<const File>> files;
  };
  Image Save() const;
  void Load(const Image& image);

  // What is written; nullopt where there is no such file.
  std::optional<std::string> Read(const std::string& path) const;
  bool Exists(const std::string& path) const { return Read(path).has_value(); }

 private:
  struct Handle;
  struct Calls;
  friend struct Calls;

  // What is to go wrong with the operation that is beginning; counts it.
  std::optional<Fault::How> Begin(Kind kind);
  void SyncDirectory();
  void Die(Fault::How how);
  std::uint64_t Random();

  std::string name_;
  sqlite3_vfs vfs_{};
  std::map<std::string, std::shared_ptr<File>> files_;
  std::optional<Fault> fault_;
  std::map<Kind, std::uint64_t> operations_;
  std::uint64_t failures_ = 0;
  std::uint64_t random_;
  std::uint64_t generation_ = 0;  // of processes
  bool down_ = false;
};

}  // namespace pelab
