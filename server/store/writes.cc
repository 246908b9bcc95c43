#include "server/store/writes.h"

namespace pelab::store {
namespace {

std::size_t Size(const std::vector<NewCell>& cells) {
  std::size_t size = 0;
  for (const NewCell& cell : cells) size += sizeof(cell) + cell.spec_json.size() + 128;
  return size;
}

struct Sizer {
  std::size_t operator()(const SubmitSweep& w) const {
    return w.document.size() + w.overrides_json.size() + w.analyses_json.size() +
           (w.first ? Size(w.first->cells) : 0);
  }
  std::size_t operator()(const ExpandSlice& w) const { return Size(w.cells); }
  std::size_t operator()(const Analyze& w) const { return w.jobs.size() * sizeof(w.jobs[0]); }
  std::size_t operator()(const WorkerHello& w) const {
    return w.capabilities_json.size() + w.slots_json.size() + w.held.size() * sizeof(Held);
  }
  std::size_t operator()(const AttemptEvent& w) const { return w.event->ByteSizeLong(); }
  std::size_t operator()(const AppendLog& w) const { return w.data.size(); }
  std::size_t operator()(const ImportJob& w) const {
    std::size_t size = w.job.ByteSizeLong() + w.epochs.size() * sizeof(v1::Epoch);
    for (const v1::ImportedAnalysis& analysis : w.analyses) size += analysis.ByteSizeLong();
    return size;
  }
  std::size_t operator()(const ImportSweep& w) const {
    return w.document.size() + w.jobs.size() * 128;
  }
  std::size_t operator()(const RegisterSheet& w) const {
    std::size_t size = w.document.size() + w.sweep_document.size();
    for (const std::string& spec_template : w.templates) size += spec_template.size();
    return size;
  }
  std::size_t operator()(const BeginRound& w) const {
    return (w.sweep ? (*this)(*w.sweep) : 0) + w.cells_json.size() + w.seeds.seeds.size();
  }
  std::size_t operator()(const EndRound& w) const { return w.claims.size() * 256; }
  std::size_t operator()(const PutAside& w) const { return w.positions.size() * 8; }
  std::size_t operator()(const RenewFiles& w) const { return w.sha256s.size() * 128; }
  std::size_t operator()(const FindUnused& w) const { return w.sha256s.size() * 128; }
  std::size_t operator()(const PutQueue& w) const { return w.settings_json.size(); }
  template <typename T>
  std::size_t operator()(const T&) const {
    return 0;
  }
};

}  // namespace

Write::Write(const Write&) = default;
Write::Write(Write&&) noexcept = default;
Write& Write::operator=(const Write&) = default;
Write& Write::operator=(Write&&) noexcept = default;
Write::~Write() = default;

WriteResult::WriteResult() = default;
WriteResult::WriteResult(const WriteResult&) = default;
WriteResult::WriteResult(WriteResult&&) noexcept = default;
WriteResult& WriteResult::operator=(const WriteResult&) = default;
WriteResult& WriteResult::operator=(WriteResult&&) noexcept = default;
WriteResult::~WriteResult() = default;

bool IsLong(const Write& write) {
  const auto* const submit = std::get_if<SubmitSweep>(&write);
  return (submit != nullptr && submit->first && !submit->first->cells.empty()) ||
         std::holds_alternative<ExpandSlice>(write) || std::holds_alternative<CancelSweep>(write) ||
         std::holds_alternative<DropSlice>(write) || std::holds_alternative<DeleteSweep>(write) ||
         std::holds_alternative<DeleteSlice>(write) || std::holds_alternative<RetrySlice>(write) ||
         std::holds_alternative<ExtendSweep>(write) || std::holds_alternative<Analyze>(write);
}

const SliceStored* JobsOf(const WriteResult& result) {
  if (const auto* slice = std::get_if<SliceStored>(&result)) return slice;
  if (const auto* sweep = std::get_if<SweepStored>(&result)) return &sweep->first;
  if (const auto* extended = std::get_if<SweepExtended>(&result)) return &extended->jobs;
  if (const auto* begun = std::get_if<RoundBegun>(&result)) return &begun->sweep.jobs;
  if (const auto* retried = std::get_if<Retried>(&result)) return &retried->jobs;
  if (const auto* analyzed = std::get_if<Analyzed>(&result)) return &analyzed->jobs;
  return nullptr;
}

std::size_t ByteSize(const Write& write) { return sizeof(Write) + std::visit(Sizer{}, write); }

std::size_t ByteSize(const std::vector<Write>& writes) {
  std::size_t size = 0;
  for (const Write& write : writes) size += ByteSize(write);
  return size;
}

}  // namespace pelab::store
