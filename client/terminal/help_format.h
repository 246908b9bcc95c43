// Help texts, wrapped to the terminal's width.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace pelab::client {

class HelpFormat final : public CLI::Formatter {
 public:
  explicit HelpFormat(int width);

  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  std::string Described(const std::string& description) const;

  const int width_;
};

}  // namespace pelab::client
