#include "client/command/control_answer.h"

#include "client/terminal/show.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"

namespace pelab::client {

int PutControl(const Context& context, const v1::SweepControl& control, const std::string& text) {
  const render::Json json = {{"sweep_id", control.sweep_id()},
                             {"name", control.name()},
                             {"state", results::StateName(control.state())},
                             {"paused", control.paused()},
                             {"priority", control.priority()},
                             {"changed", control.changed()}};
  switch (context.output()) {
    case Output::kJson:
      PutJson(context, json);
      break;
    case Output::kCsv:
      PutCsv(context, {"sweep_id", "name", "state", "paused", "priority", "changed"},
             render::Json::array({json}));
      break;
    case Output::kTable:
      context.out(Concat("sweep ", control.sweep_id(), " ", render::Escape(control.name()), ": ",
                         text, "\n"));
      break;
  }
  return kExitOk;
}

}  // namespace pelab::client
