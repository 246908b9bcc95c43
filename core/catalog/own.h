// The rules for the fields of an encoding and of a data set from a file. Pure functions:
// thread-safe.
#pragma once

#include <array>
#include <string_view>

namespace pelab::catalog {

// The methods that a module may have, in the order of their canonical form (docs/own-encodings.md
// says what each takes and returns).
inline constexpr std::array<std::string_view, 7> kOwnMethods = {
    "input_term", "transform", "angles", "distance_bias", "pair_bias", "logits", "distance_factor"};

inline constexpr std::string_view kOwnNameRule =
    "a lower-case letter, then up to 39 lower-case letters, digits or underscores";
// A word that kOwnNameRule describes.
bool IsOwnName(std::string_view text);

// The lower-case hexadecimal form of a SHA-256.
bool IsHash(std::string_view text);
inline constexpr std::string_view kNoFile =
    "0000000000000000000000000000000000000000000000000000000000000000";

inline constexpr std::string_view kChoiceNameRule =
    "a lower-case letter, then up to 39 lower-case letters, digits or underscores, and none of "
    "true, false, null, nan, inf and infinity";
// A word that kChoiceNameRule describes. The words that it excludes read as another kind of value,
// in a document or in the text of options.
bool IsChoiceName(std::string_view text);

// "" or "alpha=0.5,form=log": names in ascending order, each once, with a number, true, false or
// the name of a choice.
bool IsOptionsText(std::string_view text);

}  // namespace pelab::catalog
