#include "client/embedded/analyzer.h"

#include "client/terminal/analyze_report.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

class Analyzer final : public EmbeddedSession {
 public:
  Analyzer(const Context& context, const std::string& target, const std::string& sweep,
           const AnalysisWords& words, const WorkerOptions& worker)
      : EmbeddedSession(context, worker), target_(target), sweep_(sweep), words_(words) {}

 protected:
  absl::StatusOr<int> Work(Coordinator& coordinator) override {
    PELAB_ASSIGN_OR_RETURN(const AnalysisPlan plan,
                           PlanAnalyses(coordinator, target_, sweep_, words_));
    PELAB_ASSIGN_OR_RETURN(const v1::AnalyzeResponse answer, AskForAnalyses(coordinator, plan));
    if (!announced_) PutAnswer(context(), plan, answer);
    announced_ = true;
    if (answer.queued() > 0) {
      PELAB_RETURN_IF_ERROR(EnsureWorker());
      PELAB_RETURN_IF_ERROR(Follow([&](Canceller& canceller) {
        return AwaitAnalyses(context(), coordinator, plan, /*trained_only=*/true, &canceller);
      }));
    }
    PELAB_ASSIGN_OR_RETURN(const int code, ReportAnalyses(context(), coordinator, plan, answer));
    Stop();
    return code;
  }

  std::string GoOnHint() const override {
    return "the analyses that are left stay queued; the same command goes on";
  }
  std::string JoinedHint() const override { return "the analyses go on where they were asked for"; }

 private:
  const std::string& target_;
  const std::string& sweep_;
  const AnalysisWords& words_;
  bool announced_ = false;
};

}  // namespace

absl::StatusOr<int> AnalyzeEmbedded(const Context& context, const std::string& target,
                                    const std::string& sweep, const AnalysisWords& words,
                                    const WorkerOptions& worker) {
  return Analyzer(context, target, sweep, words, worker).Run();
}

}  // namespace pelab::client
