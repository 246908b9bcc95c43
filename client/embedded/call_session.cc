#include "client/embedded/call_session.h"

#include <filesystem>

#include "client/source/connect.h"
#include "core/base/status.h"

namespace pelab::client {
namespace {

constexpr char kSameCommand[] = "the same command goes on with the rest";

class CallSession final : public EmbeddedSession {
 public:
  CallSession(const Context& context,
              const std::function<absl::Status(Coordinator&, Canceller&)>& call)
      : EmbeddedSession(context, {}), call_(call) {}

 protected:
  absl::StatusOr<int> Work(Coordinator& coordinator) override {
    PELAB_RETURN_IF_ERROR(
        Follow([&](Canceller& canceller) { return call_(coordinator, canceller); }));
    Stop();
    return kExitOk;
  }

  std::string GoOnHint() const override { return kSameCommand; }
  std::string JoinedHint() const override { return kSameCommand; }

 private:
  const std::function<absl::Status(Coordinator&, Canceller&)>& call_;
};

}  // namespace

absl::Status CallEmbedded(const Context& context, const std::string& stopped,
                          const std::function<absl::Status(Coordinator&, Canceller&)>& call) {
  CallSession session(context, call);
  PELAB_ASSIGN_OR_RETURN(const int code, session.Run());
  return code == kExitOk ? absl::OkStatus() : absl::CancelledError(stopped);
}

absl::StatusOr<Asked> CallOnce(const Context& context,
                               const std::function<absl::Status(Coordinator&)>& call) {
  PELAB_ASSIGN_OR_RETURN(const bool served, IsServed(context.options));
  std::error_code ignored;
  if (served || !std::filesystem::exists(context.options.database, ignored)) {
    PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
    PELAB_RETURN_IF_ERROR(call(*coordinator));
    return Asked::kCoordinator;
  }
  PELAB_RETURN_IF_ERROR(CheckDatabaseFile(context.options.database));
  PELAB_RETURN_IF_ERROR(CallEmbedded(
      context, "stopped", [&](Coordinator& coordinator, Canceller&) { return call(coordinator); }));
  return Asked::kOwnCoordinator;
}

}  // namespace pelab::client
