#include "client/command/control_answer.h"

#include "client/terminal/put.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"

namespace pelab::client {

int PutControl(const Context& context, const v1::SweepControl& control, const std::string& text) {
  return PutRow(
      context,
      {{"sweep_id", control.sweep_id()},
       {"name", control.name()},
       {"state", results::StateName(control.state())},
       {"paused", control.paused()},
       {"priority", control.priority()},
       {"changed", control.changed()}},
      Concat("sweep ", control.sweep_id(), " ", render::Escape(control.name()), ": ", text, "\n"));
}

}  // namespace pelab::client
