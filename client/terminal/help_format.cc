#include "client/terminal/help_format.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr int kNameColumns = 30;
constexpr int kLeastColumns = 60;
constexpr int kMostColumns = 120;  // longer lines are hard to read

// Wraps each line separately.
std::string WrapLines(const std::string& text, int width) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) line = render::Wrap(line, width);
  return absl::StrJoin(lines, "\n");
}

}  // namespace

HelpFormat::HelpFormat(int width) : width_(std::clamp(width, kLeastColumns, kMostColumns)) {
  column_width(kNameColumns);
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return Described(option->get_description());
}

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  std::string text = "  " + command->get_name();
  const std::string description = Described(command->get_description());
  text = render::PadRight(text, kNameColumns);
  for (const char c : description) {
    text += c;
    if (c == '\n') text.append(kNameColumns, ' ');
  }
  return text + "\n";
}

std::string HelpFormat::make_description(const CLI::App* command) const {
  return WrapLines(CLI::Formatter::make_description(command), width_);
}

std::string HelpFormat::make_footer(const CLI::App* command) const {
  return WrapLines(CLI::Formatter::make_footer(command), width_);
}

std::string HelpFormat::Described(const std::string& description) const {
  return WrapLines(description, width_ - kNameColumns);
}

}  // namespace pelab::client
