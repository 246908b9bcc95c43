#include "client/command/notes.h"

#include "core/base/strings.h"
#include "core/experiment/sweep_notes.h"
#include "core/render/text.h"

namespace pelab::client {

void PutNotes(const Context& context, const experiment::Sweep& sweep) {
  for (const std::string& note : experiment::NotesOn(sweep))
    context.err(Concat("note: ", render::Escape(note), "\n"));
}

}  // namespace pelab::client
