#include "client/command/notes.h"

#include "core/spec/sweep_notes.h"
#include "core/views/text.h"

namespace pelab::client {

void PutNotes(const Context& context, const spec::Sweep& sweep) {
  for (const std::string& note : spec::NotesOn(sweep)) context.err(Concat("note: ", note, "\n"));
}

}  // namespace pelab::client
