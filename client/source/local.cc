#include "client/source/local.h"

#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/db/check/check.h"
#include "core/db/read/reader_pool.h"

namespace pelab::client {
namespace {

// Commands read UNAVAILABLE as "no coordinator", so an unreadable file gets another code.
absl::Status OfFile(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::InternalError(status.message());
}

class LocalSource final : public DataSource {
 public:
  explicit LocalSource(const std::string& path) : path_(path), readers_(path) {}

  // Whether the file can be read.
  absl::Status Check() { return OfFile(readers_.Take().status()); }

  absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) override {
    const std::optional<std::string> file = db::ArtifactPath(path_, sha256);
    if (!file) {
      return absl::NotFoundError(Concat(path_, " names a file \"", Shorten(sha256, 80),
                                        "\", which is no SHA-256: there is no such file"));
    }
    const absl::StatusOr<UniqueFd> in = OpenRegularFile(*file);
    if (!in.ok()) return absl::NotFoundError(Concat("no stored file ", *file));
    return ReadPieces(in->get(), *file, on_piece);
  }
  absl::StatusOr<std::vector<v1::WorkerRow>> Workers() override {
    PELAB_ASSIGN_OR_RETURN(auto rows, DataSource::Workers());
    // Nobody serves the file, so no worker can be connected, whatever the rows say.
    for (v1::WorkerRow& row : rows) row.set_state("offline");
    return rows;
  }
  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) override {
    auto reader = readers_.Take();
    if (!reader.ok()) return OfFile(reader.status());
    auto parts = (*reader)->ReadLog(job, attempt, 0);
    if (!parts.ok()) return OfFile(parts.status());
    return parts;
  }
  std::string Description() const override { return Concat(path_, " (nobody serves it)"); }

 private:
  absl::Status Use(const std::function<absl::Status(db::RowReader&)>& use) override {
    const auto reader = readers_.Take();
    return OfFile(reader.ok() ? use(**reader) : reader.status());
  }

  const std::string path_;
  db::ReaderPool readers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataSource>> OpenFile(const std::string& path) {
  auto source = std::make_unique<LocalSource>(path);
  PELAB_RETURN_IF_ERROR(source->Check());
  return source;
}

}  // namespace pelab::client
