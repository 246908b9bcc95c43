#include "server/store/checkpointer.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <pthread.h>
#include <sqlite3.h>

#include <memory>
#include <utility>

#include "migrations/migrate.h"

namespace pelab::store {
namespace {

// Opens a connection to the file; nullptr if that fails. The writer will report the reason.
std::unique_ptr<SQLite::Database> Connect(const std::string& path, const std::string& vfs) {
  try {
    auto db = std::make_unique<SQLite::Database>(
        path, SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, /*aBusyTimeoutMs=*/0, vfs);
    migrations::SetUpWriting(*db);
    return db;
  } catch (const SQLite::Exception&) {
    return nullptr;
  }
}

}  // namespace

Checkpointer::Checkpointer(std::string path, std::string vfs)
    : path_(std::move(path)), vfs_(std::move(vfs)), thread_([this] { Run(); }) {}

Checkpointer::~Checkpointer() {
  {
    MutexLock lock(&mutex_);
    state_ = State::kStopping;
  }
  thread_.join();
}

bool Checkpointer::Begin() {
  MutexLock lock(&mutex_);
  if (Busy()) return false;
  state_ = State::kWanted;
  return true;
}

void Checkpointer::AwaitEnd() {
  MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !Busy(); };
  mutex_.Await(ended);
}

bool Checkpointer::TakeEnded() {
  MutexLock lock(&mutex_);
  if (state_ != State::kEnded) return false;
  state_ = State::kIdle;
  return true;
}

void Checkpointer::Run() {
  pthread_setname_np(pthread_self(), "checkpointer");  // shown by top, perf and gdb
  std::unique_ptr<SQLite::Database> db;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      const auto asked = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return state_ == State::kWanted || state_ == State::kStopping;
      };
      mutex_.Await(asked);
      if (state_ == State::kStopping) return;
      state_ = State::kRunning;
    }
    if (!db) db = Connect(path_, vfs_);
    if (db) {
      sqlite3_wal_checkpoint_v2(db->getHandle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr,
                                nullptr);
    }
    MutexLock lock(&mutex_);
    if (state_ == State::kRunning) state_ = State::kEnded;
  }
}

}  // namespace pelab::store
