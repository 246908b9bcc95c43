// Commands that a person can run again, as they are shown in hints and reports. Thread-safe.
#pragma once

#include <string>

#include "client/options/options.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// `argument` as a word of a shell: in quotes if it needs them.
std::string ShellWord(const std::string& argument);

// The `pelab run` that submits the document of the sweep again, with its name and overrides:
// "pelab run tiny.yaml --name foo --set train.epochs=3". Continues the sweep where it is stored.
// If a claim sheet made the sweep, the command is `pelab settle` with the sheet.
std::string RunCommand(const v1::Sweep& sweep);

// A line that says how to train what waits in a database that nobody serves. A sweep without a
// number: any.
std::string TrainText(const Context& context, const v1::Sweep& sweep);

}  // namespace pelab::client
