// A file system for SQLite that lives in memory and fails like a disk. Every file has two images:
// the written image, which the process sees, and the durable image, which remains after a power
// loss.
//
// It guarantees what POSIX and Linux guarantee, and no more:
//   - Later reads see a write at once. The write is durable after the next xSync that succeeds.
//   - After a failed xSync the pages that were dirty count as clean: they are read as written,
//     but no later xSync makes them durable unless they are written again (fsync on Linux). Some of
//     them may have reached the disk all the same.
//   - The first xSync of a new file also syncs its directory, like SQLite's unix VFS for journals
//     and WALs. All files are in one directory. Until it is synced, a power loss removes a new file
//     and brings a deleted file back with its old durable content.
//   - A full disk refuses a write, or writes only its first half (SQLITE_FULL).
//   - At a power loss any part of the unsynced data may reach the disk, in sectors of 512
//     bytes and in any order: writes can be torn, and a later write can survive without an earlier
//     one.
//   - A write never changes bytes next to its own (SQLITE_IOCAP_POWERSAFE_OVERWRITE, as on Linux).
//   - A killed process leaves everything that it wrote; its locks and shared memory vanish.
//
// Locks and the WAL's shared memory work between the connections of one process. For one thread.
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
  // Operations that change the disk; they are numbered from 1.
  enum Kind : unsigned { kWrite = 1, kSync = 2, kTruncate = 4, kAny = 7 };

  struct Fault {
    enum How {
      kIoError,  // EIO: nothing is written; a failed sync loses the dirty data
      kFull,     // ENOSPC: nothing is written
      kShort,    // ENOSPC in the middle: only the first half is written
      kCrash,    // the process dies during the operation
      kPowerLoss,
    };
    std::uint64_t at = 0;     // the number of the operation among those of `kinds`
    std::uint64_t times = 1;  // how many operations in a row fail
    unsigned kinds = kAny;
    How how = kIoError;
  };

  // Registers itself with SQLite under name(). For `seed` see Seed().
  explicit FaultyVfs(std::uint64_t seed = 1);
  // All connections must be closed.
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;

  const std::string& name() const { return name_; }

  // Determines which unsynced data survives from now on.
  void Seed(std::uint64_t seed) { random_ = seed; }
  void Set(const Fault& fault) { fault_ = fault; }
  void ClearFault() { fault_.reset(); }
  // The number of operations of these kinds so far.
  std::uint64_t operations(unsigned kinds = kAny) const;
  std::uint64_t failures() const { return failures_; }

  // Kills the process: everything that is open fails from now on without any effect, and nothing
  // can be opened before Restart.
  void Crash();
  // Like Crash, and each file keeps only its durable image, plus a share `survivors` (0 to 1) of
  // the sectors that were not synced.
  void LosePower(double survivors);
  // Starts a new process.
  void Restart() { down_ = false; }
  bool down() const { return down_; }

  // A copy of all files. Call Load on a new VFS or after a crash.
  struct File;
  struct Image {
    std::map<std::string, std::shared_ptr<const File>> files;
  };
  Image Save() const;
  void Load(const Image& image);

  // The written content; nullopt if there is no such file.
  std::optional<std::string> Read(const std::string& path) const;
  bool Exists(const std::string& path) const;

 private:
  struct Opened;
  struct Handle;
  struct Calls;
  friend struct Calls;

  // Counts an operation that begins, and returns how it is to fail, if at all.
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
  std::uint64_t generation_ = 0;  // counts processes
  bool down_ = false;
};

}  // namespace pelab
