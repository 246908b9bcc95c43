#include "tests/support/faulty_vfs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/random.h"
#include "tests/support/shared_bytes.h"

namespace pelab {
namespace {

constexpr std::size_t kSector = 512;
constexpr int kMaxPath = 512;
constexpr int kShmLocks = SQLITE_SHM_NLOCK;

// A write, or a truncation (without data), that is not synced.
struct Dirty {
  std::size_t offset = 0;
  std::string data;
  bool truncate = false;
};

void ApplyTo(SharedBytes& image, const Dirty& dirty) {
  if (dirty.truncate) {
    image.resize(dirty.offset);
  } else {
    image.Write(dirty.offset, dirty.data.data(), dirty.data.size());
  }
}

}  // namespace

// The WAL index. A connection of a process that has died still uses its own until it is closed.
using Regions = std::vector<std::unique_ptr<char[]>>;

struct FaultyVfs::File {
  bool exists = true;
  SharedBytes written;
  // this file's durable content, whether or not the directory's durable entry exists
  SharedBytes durable;
  std::vector<Dirty> dirty;           // since the last sync, failed or not
  bool linked = false;                // its entry in the directory is durable
  std::optional<SharedBytes> before;  // the durable content under this name while `linked` is false

  // State of the running process.
  int shared = 0;            // holders of a shared lock or more
  void* reserved = nullptr;  // the handle that will write
  // the handle that waits for, or has, exclusive access
  void* pending = nullptr;
  std::shared_ptr<Regions> regions = std::make_shared<Regions>();
  std::array<int, kShmLocks> region_shared{};
  std::array<void*, kShmLocks> region_exclusive{};
  int region_users = 0;

  File() = default;
  // The locks and regions of a process are not part of an image.
  File(const File& other)
      : exists(other.exists),
        written(other.written),
        durable(other.durable),
        dirty(other.dirty),
        linked(other.linked),
        before(other.before) {}

  void ForgetProcess() {
    shared = 0;
    reserved = pending = nullptr;
    regions = std::make_shared<Regions>();
    region_shared.fill(0);
    region_exclusive.fill(nullptr);
    region_users = 0;
  }
};

struct FaultyVfs::Opened {
  std::shared_ptr<File> file;
  std::shared_ptr<Regions> regions;  // once they are mapped
};

// SQLite's handle of an open file, which it has no constructor for.
struct FaultyVfs::Handle {
  sqlite3_file base;  // SQLite's own part; must be first
  FaultyVfs* vfs;
  Opened* opened;
  std::uint64_t generation;
  bool temporary;  // has no name; its content does not matter after a crash
  bool remove;     // remove the file when it is closed
  int lock;
  bool mapped;
  unsigned region_shared;  // one bit per lock
  unsigned region_exclusive;

  bool dead() const { return generation != vfs->generation_; }
  File& f() const { return *opened->file; }
};

// The functions in SQLite's method tables.
struct FaultyVfs::Calls {
  static Handle& H(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  static FaultyVfs& V(sqlite3_vfs* vfs) { return *static_cast<FaultyVfs*>(vfs->pAppData); }

  static int Close(sqlite3_file* file) {
    Handle& h = H(file);
    if (h.opened == nullptr) return SQLITE_OK;
    if (!h.dead()) {
      Unlock(file, SQLITE_LOCK_NONE);
      if (h.mapped) ShmUnmap(file, 0);
      if (h.remove) h.f().exists = false;
    }
    delete h.opened;
    h.opened = nullptr;
    return SQLITE_OK;
  }

  static int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_READ;
    const std::size_t got = h.f().written.Read(offset, static_cast<char*>(to), size);
    if (got == static_cast<std::size_t>(size)) return SQLITE_OK;
    std::memset(static_cast<char*>(to) + got, 0, size - got);
    return SQLITE_IOERR_SHORT_READ;
  }

  static void Put(Handle& h, const char* data, std::size_t size, std::size_t offset) {
    h.f().written.Write(offset, data, size);
    if (!h.temporary) h.f().dirty.push_back({offset, std::string(data, size)});
  }

  static int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_WRITE;
    const char* data = static_cast<const char*>(from);
    const auto fault = h.temporary ? std::nullopt : h.vfs->Begin(kWrite);
    if (!fault) {
      Put(h, data, size, offset);
      return SQLITE_OK;
    }
    switch (*fault) {
      case Fault::kFull:
        return SQLITE_FULL;
      case Fault::kShort:
        Put(h, data, size / 2, offset);
        return SQLITE_FULL;
      case Fault::kCrash:
      case Fault::kPowerLoss:
        Put(h, data, h.vfs->Random() % (size + 1), offset);
        h.vfs->Die(*fault);
        return SQLITE_IOERR_WRITE;
      case Fault::kIoError:
        break;
    }
    return SQLITE_IOERR_WRITE;
  }

  static int Truncate(sqlite3_file* file, sqlite3_int64 size) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_TRUNCATE;
    if (const auto fault = h.temporary ? std::nullopt : h.vfs->Begin(kTruncate)) {
      h.vfs->Die(*fault);
      return SQLITE_IOERR_TRUNCATE;
    }
    if (h.f().written.size() > static_cast<std::size_t>(size)) {
      h.f().written.resize(size);
      if (!h.temporary) h.f().dirty.push_back({static_cast<std::size_t>(size), "", true});
    }
    return SQLITE_OK;
  }

  static int Sync(sqlite3_file* file, int) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_FSYNC;
    if (h.temporary) return SQLITE_OK;
    File& f = h.f();
    if (const auto fault = h.vfs->Begin(kSync)) {
      h.vfs->Die(*fault);
      if (h.dead()) return SQLITE_IOERR_FSYNC;
      // The data counts as clean from now on. Chance decides which of it is durable.
      for (const Dirty& dirty : f.dirty) {
        if (h.vfs->Random() % 2 == 0) ApplyTo(f.durable, dirty);
      }
      f.dirty.clear();
      return SQLITE_IOERR_FSYNC;
    }
    for (const Dirty& dirty : f.dirty) ApplyTo(f.durable, dirty);
    f.dirty.clear();
    if (!f.linked) h.vfs->SyncDirectory();
    return SQLITE_OK;
  }

  static int FileSize(sqlite3_file* file, sqlite3_int64* size) {
    if (H(file).dead()) return SQLITE_IOERR_FSTAT;
    *size = static_cast<sqlite3_int64>(H(file).f().written.size());
    return SQLITE_OK;
  }

  // Many may hold SHARED, and one may hold RESERVED beside them. PENDING admits no new SHARED.
  // EXCLUSIVE is alone.
  static int Lock(sqlite3_file* file, int level) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_LOCK;
    File& f = h.f();
    if (h.lock >= level) return SQLITE_OK;
    if (h.lock == SQLITE_LOCK_NONE) {
      if (f.pending != nullptr) return SQLITE_BUSY;
      f.shared += 1;
      h.lock = SQLITE_LOCK_SHARED;
    }
    if (level == SQLITE_LOCK_SHARED) return SQLITE_OK;
    if (f.reserved != nullptr && f.reserved != &h) return SQLITE_BUSY;
    if (level == SQLITE_LOCK_RESERVED) {
      f.reserved = &h;
      h.lock = level;
      return SQLITE_OK;
    }
    if (f.pending != nullptr && f.pending != &h) return SQLITE_BUSY;
    f.pending = &h;
    if (f.shared > 1) {
      h.lock = SQLITE_LOCK_PENDING;
      return SQLITE_BUSY;
    }
    h.lock = SQLITE_LOCK_EXCLUSIVE;
    return SQLITE_OK;
  }
  static int Unlock(sqlite3_file* file, int level) {
    Handle& h = H(file);
    if (h.dead() || h.lock <= level) return SQLITE_OK;
    File& f = h.f();
    if (f.reserved == &h) f.reserved = nullptr;
    if (f.pending == &h) f.pending = nullptr;
    if (level == SQLITE_LOCK_NONE) f.shared -= 1;
    h.lock = level;
    return SQLITE_OK;
  }
  static int CheckReserved(sqlite3_file* file, int* reserved) {
    *reserved = H(file).f().reserved != nullptr ? 1 : 0;
    return SQLITE_OK;
  }

  static int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
  static int SectorSize(sqlite3_file*) { return 4096; }
  static int Characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** out) {
    Handle& h = H(file);
    *out = nullptr;
    if (h.dead()) return SQLITE_IOERR_SHMMAP;
    File& f = h.f();
    if (!h.mapped) {
      h.mapped = true;
      h.opened->regions = f.regions;
      f.region_users += 1;
    }
    Regions& regions = *h.opened->regions;
    while (regions.size() <= static_cast<std::size_t>(region)) {
      if (!extend) return SQLITE_OK;
      regions.push_back(std::make_unique<char[]>(size));  // filled with zeros
    }
    *out = regions[region].get();
    return SQLITE_OK;
  }
  static int ShmLock(sqlite3_file* file, int first, int count, int flags) {
    Handle& h = H(file);
    if (h.dead()) return SQLITE_IOERR_SHMLOCK;
    File& f = h.f();
    const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
    if ((flags & SQLITE_SHM_UNLOCK) != 0) {
      for (int i = first; i < first + count; ++i) Release(h, i);
      return SQLITE_OK;
    }
    for (int i = first; i < first + count; ++i) {
      const int own = (h.region_shared >> i) & 1;
      if (f.region_exclusive[i] != nullptr && f.region_exclusive[i] != &h) return SQLITE_BUSY;
      if (exclusive && f.region_shared[i] > own) return SQLITE_BUSY;
    }
    for (int i = first; i < first + count; ++i) {
      if (exclusive) {
        f.region_exclusive[i] = &h;
        h.region_exclusive |= 1U << i;
      } else if (((h.region_shared >> i) & 1) == 0) {
        f.region_shared[i] += 1;
        h.region_shared |= 1U << i;
      }
    }
    return SQLITE_OK;
  }
  static void Release(Handle& h, int lock) {
    if ((h.region_shared >> lock) & 1) h.f().region_shared[lock] -= 1;
    if ((h.region_exclusive >> lock) & 1) h.f().region_exclusive[lock] = nullptr;
    h.region_shared &= ~(1U << lock);
    h.region_exclusive &= ~(1U << lock);
  }
  static void ShmBarrier(sqlite3_file*) {}
  static int ShmUnmap(sqlite3_file* file, int) {
    Handle& h = H(file);
    if (h.dead() || !h.mapped) return SQLITE_OK;
    for (int i = 0; i < kShmLocks; ++i) Release(h, i);
    h.mapped = false;
    h.opened->regions.reset();
    if (--h.f().region_users == 0) h.f().regions = std::make_shared<Regions>();
    return SQLITE_OK;
  }

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags,
                  int* out_flags) {
    static const sqlite3_io_methods methods = {2,
                                               Close,
                                               Read,
                                               Write,
                                               Truncate,
                                               Sync,
                                               FileSize,
                                               Lock,
                                               Unlock,
                                               CheckReserved,
                                               FileControl,
                                               SectorSize,
                                               Characteristics,
                                               ShmMap,
                                               ShmLock,
                                               ShmBarrier,
                                               ShmUnmap,
                                               nullptr,
                                               nullptr};
    FaultyVfs& v = V(vfs);
    Handle& h = *new (file) Handle{};  // base.pMethods is null: SQLite does not close it
    if (v.down_) return SQLITE_CANTOPEN;
    auto shared = path == nullptr ? std::make_shared<File>() : nullptr;
    if (path != nullptr) {
      auto& entry = v.files_[path];
      if (!entry) {
        entry = std::make_shared<File>();
        entry->exists = false;
      }
      if (!entry->exists) {
        if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
        entry->exists = true;
        entry->written.clear();
        entry->durable.clear();
        entry->dirty.clear();
      }
      shared = entry;
    }
    h.vfs = &v;
    h.opened = new Opened{std::move(shared), nullptr};
    h.generation = v.generation_;
    h.temporary = path == nullptr || (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    h.remove = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    h.base.pMethods = &methods;
    if (out_flags != nullptr) *out_flags = flags;
    return SQLITE_OK;
  }

  static int Delete(sqlite3_vfs* vfs, const char* path, int sync_directory) {
    FaultyVfs& v = V(vfs);
    if (v.down_) return SQLITE_IOERR_DELETE;
    const auto found = v.files_.find(path);
    if (found == v.files_.end() || !found->second->exists) return SQLITE_IOERR_DELETE_NOENT;
    File& f = *found->second;
    if (f.linked) f.before = f.durable;
    f.exists = f.linked = false;
    f.written.clear();
    f.durable.clear();
    f.dirty.clear();
    if (sync_directory != 0) v.SyncDirectory();
    return SQLITE_OK;
  }
  static int Access(sqlite3_vfs* vfs, const char* path, int, int* there) {
    const FaultyVfs& v = V(vfs);
    if (v.down_) return SQLITE_IOERR_ACCESS;
    *there = v.Exists(path) ? 1 : 0;
    return SQLITE_OK;
  }
  static int FullPath(sqlite3_vfs*, const char* path, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
  }
  static int Randomness(sqlite3_vfs* vfs, int size, char* out) {
    for (int i = 0; i < size; ++i) out[i] = static_cast<char>(V(vfs).Random());
    return size;
  }
  static int Sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
  static int CurrentTime(sqlite3_vfs*, double* days) {
    *days = 2'460'000.5;
    return SQLITE_OK;
  }
  static int LastError(sqlite3_vfs*, int, char*) { return 0; }
};

FaultyVfs::FaultyVfs(std::uint64_t seed) : random_(seed) {
  static std::uint64_t made = 0;
  name_ = "faulty-" + std::to_string(++made);
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(Handle);
  vfs_.mxPathname = kMaxPath;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = Calls::Open;
  vfs_.xDelete = Calls::Delete;
  vfs_.xAccess = Calls::Access;
  vfs_.xFullPathname = Calls::FullPath;
  vfs_.xRandomness = Calls::Randomness;
  vfs_.xSleep = Calls::Sleep;
  vfs_.xCurrentTime = Calls::CurrentTime;
  vfs_.xGetLastError = Calls::LastError;
  sqlite3_vfs_register(&vfs_, /*makeDflt=*/0);
}

FaultyVfs::~FaultyVfs() { sqlite3_vfs_unregister(&vfs_); }

std::uint64_t FaultyVfs::Random() { return Mix64(random_ += 0x9E3779B97F4A7C15); }

std::uint64_t FaultyVfs::operations(unsigned kinds) const {
  std::uint64_t sum = 0;
  for (const auto& [kind, count] : operations_) sum += (kinds & kind) != 0 ? count : 0;
  return sum;
}

std::optional<FaultyVfs::Fault::How> FaultyVfs::Begin(Kind kind) {
  operations_[kind] += 1;
  if (!fault_ || (fault_->kinds & kind) == 0) return std::nullopt;
  const std::uint64_t number = operations(fault_->kinds);
  if (number < fault_->at || number - fault_->at >= fault_->times) return std::nullopt;
  failures_ += 1;
  return fault_->how;
}

void FaultyVfs::SyncDirectory() {
  for (auto& [path, file] : files_) {
    file->linked = file->exists;
    file->before.reset();
  }
}

void FaultyVfs::Die(Fault::How how) {
  if (how == Fault::kCrash) Crash();
  if (how == Fault::kPowerLoss) LosePower(static_cast<double>(Random() % 101) / 100);
}

void FaultyVfs::Crash() {
  generation_ += 1;
  down_ = true;
  fault_.reset();
  for (auto& [path, file] : files_) file->ForgetProcess();
}

void FaultyVfs::LosePower(double survivors) {
  Crash();
  const auto threshold = static_cast<std::uint64_t>(survivors * 1000);
  const auto survives = [&] { return Random() % 1000 < threshold; };
  for (auto& [path, file] : files_) {
    File& f = *file;
    if (f.exists && f.linked) {
      for (const Dirty& dirty : f.dirty) {
        if (dirty.truncate) {
          if (survives()) ApplyTo(f.durable, dirty);
          continue;
        }
        for (std::size_t at = 0; at < dirty.data.size(); at += kSector) {
          const std::size_t size = std::min(kSector, dirty.data.size() - at);
          if (survives()) f.durable.Write(dirty.offset + at, dirty.data.data() + at, size);
        }
      }
    } else {
      f.exists = f.linked = f.before.has_value();
      f.durable = f.before.value_or(SharedBytes());
    }
    f.before.reset();
    f.written = f.durable;
    f.dirty.clear();
  }
}

FaultyVfs::Image FaultyVfs::Save() const {
  Image image;
  for (const auto& [path, file] : files_) image.files[path] = std::make_shared<File>(*file);
  return image;
}

void FaultyVfs::Load(const Image& image) {
  files_.clear();
  for (const auto& [path, file] : image.files) files_[path] = std::make_shared<File>(*file);
}

std::optional<std::string> FaultyVfs::Read(const std::string& path) const {
  if (!Exists(path)) return std::nullopt;
  return files_.at(path)->written.ToString();
}

bool FaultyVfs::Exists(const std::string& path) const {
  const auto found = files_.find(path);
  return found != files_.end() && found->second->exists;
}

}  // namespace pelab
