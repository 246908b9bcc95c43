// Writes that concern claim sheets and their rounds (writes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pelab/v1/claims.pb.h"
#include "server/store/sweep_values.h"

namespace pelab::store {

// Registers a sheet. A sheet that is registered already stays as it is.
struct RegisterSheet {
  std::string name;
  std::string sha256;
  std::string document;
  std::string file_name;
  std::string sweep_document;
  std::vector<std::string> templates;  // of the configurations that its claims are about
  std::int64_t first_seed = 0;         // the sheet uses none before it
  bool fresh = true;                   // begins after the last seed that one of them has
  std::int64_t end_of_seeds = 0;       // seeds from here on are for pilots, and are not looked at
  std::int64_t max_seeds = 0;
  std::int64_t slots = 1;
  std::string owner;
  std::int64_t now = 0;
};
struct SheetRegistered {
  std::int64_t sheet_id = 0;
  bool is_new = false;
  // Set if another sheet, with other content, has the name; nothing is stored then.
  std::optional<std::int64_t> has_name;
  // Set if fewer than max_seeds seeds are left; nothing is stored then.
  std::optional<std::int64_t> fresh_from;
};

// Begins the next round of a sheet: adds its seeds to the sheet's sweep, which the first round
// makes. Does nothing unless the previous round has ended, the sheet has `put_aside` claims that
// are put aside, and the sweep still has `seeds.known` extensions, if seeds are to be added. If too
// many jobs wait (`full`), a new sweep stays without jobs.
struct BeginRound {
  std::int64_t sheet_id = 0;
  std::int64_t round = 1;
  std::int64_t first_seed = 0;
  std::int64_t end_seed = 0;
  std::string cells_json;
  std::int64_t put_aside = 0;  // claims, as the one who plans the round sees them
  // Without seeds; null: the sheet has its sweep. A pointer, because each store::Write, such as
  // that of an epoch, is as large as the largest kind.
  std::shared_ptr<const SubmitSweep> sweep;
  ExtendSweep seeds;  // of the sheet's sweep; without seeds if it has them all
  std::int64_t now = 0;
};
struct RoundBegun {
  bool applied = false;
  std::int64_t sweep_id = 0;
  SweepExtended sweep;  // `applied` is false if `full` is set
};

// Ends the sheet's last round. Does nothing if that round has ended, or if the number of claims put
// aside is no longer `put_aside`: then the verdicts in `claims` are out of date.
struct EndRound {
  std::int64_t sheet_id = 0;
  std::int64_t round = 1;
  std::vector<v1::SheetClaimRow> claims;  // all claims of the sheet, after this round
  std::int64_t put_aside = 0;
  std::int64_t now = 0;
};
struct RoundEnded {
  bool applied = false;
};

// Puts claims aside: they are open after `round`, which is the last one that has ended, and get no
// further seeds. Nothing happens if another round is the last one.
struct PutAside {
  std::int64_t sheet_id = 0;
  std::int64_t round = 1;
  std::vector<std::int64_t> positions;  // of the claims in the sheet, from 0
};
struct ClaimsPutAside {
  bool applied = false;
};

}  // namespace pelab::store
