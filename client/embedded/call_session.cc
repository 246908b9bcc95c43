#include "client/embedded/import_session.h"

#include <utility>

#include "core/base/status.h"

namespace pelab::client {
namespace {

class ImportSession final : public EmbeddedSession {
 public:
  ImportSession(const Context& context, Importer& importer,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress)
      : EmbeddedSession(context, {}), importer_(importer), progress_(progress) {}

  const ImportReport& report() const { return report_; }

 protected:
  absl::StatusOr<int> Work(Coordinator& coordinator) override {
    PELAB_RETURN_IF_ERROR(Follow([&](Canceller& canceller) {
      PELAB_ASSIGN_OR_RETURN(
          report_, importer_.Run(
                       coordinator, [&canceller] { return canceller.cancelled(); }, progress_));
      return absl::OkStatus();
    }));
    Stop();
    return kExitOk;
  }

  std::string GoOnHint() const override { return "the same command goes on with the rest"; }
  std::string JoinedHint() const override { return "the same command goes on with the rest"; }

 private:
  Importer& importer_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  ImportReport report_;
};

}  // namespace

absl::StatusOr<ImportReport> ImportEmbedded(
    const Context& context, Importer& importer,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  ImportSession session(context, importer, progress);
  PELAB_ASSIGN_OR_RETURN(const int code, session.Run());
  if (code == kExitOk) return session.report();
  return absl::CancelledError("stopped; what was imported stays, and the same command goes on");
}

}  // namespace pelab::client
