// Messages of a lying worker: those that break a rule, and texts and numbers at the edge of what
// is allowed. Pure functions of their draws.
#pragma once

#include <string>

#include "pelab/v1/fleet.pb.h"
#include "tests/sim/world.h"

namespace pelab::sim {

// Long, empty, not UTF-8, or meant for somebody's terminal or SQL.
std::string OddText(Dice& dice);

// An event as a trainer might send it after `epochs` epochs, without attempt and number. Its values
// are made up.
v1::Event MadeUpEvent(Dice& dice, int epochs);
// Breaks a rule for events of this kind; some rules hold for one job only.
void BreakRule(Dice& dice, v1::Event& event);

// Changes the slots and texts of a hello. The coordinator refuses some of them.
void MakeOdd(Dice& dice, v1::Hello& hello);

}  // namespace pelab::sim
