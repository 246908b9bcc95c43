#include "worker/trainer/pe/registry.h"

#include <string>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

const std::vector<PeEntry>& PeRegistry() {
  static const auto* const table = new std::vector<PeEntry>{
      {"nope", 1, MakeNope},
      {"absolute", 1, MakeAbsolute},
      {"random", 1, MakeRandom},
      {"relative", 1, MakeRelative},
      {"shaw", 1, MakeShaw},
      {"alibi", 1, MakeAlibi},
      {"rope", 1, MakeRope},
      {"xpos", 1, MakeXpos},
      {"partial_rope", 1, MakePartialRope},
      {"rope_abs", 1, MakeRopeAbs},
      {"mla", 1, MakeMla},
  };
  return *table;
}

const PeEntry& OwnPeEntry() {
  static const PeEntry entry = {"own", 1, MakeOwn};
  return entry;
}

std::unique_ptr<PositionalEncoding> MakePe(const PeContext& context) {
  std::string known;
  std::vector<PeEntry> entries = PeRegistry();
  entries.push_back(OwnPeEntry());
  for (const PeEntry& entry : entries) {
    if (entry.name == context.job.pe && entry.version == context.job.pe_version) {
      return entry.make(context);
    }
    known += (known.empty() ? "" : ", ") + std::string(entry.name) + " version " +
             std::to_string(entry.version);
  }
  throw TrainerError(ErrorKind::kBadSpec,
                     "this trainer has no pe \"" + context.job.pe + "\" version " +
                         std::to_string(context.job.pe_version) + "; known: " + known);
}

}  // namespace pelab::trainer
