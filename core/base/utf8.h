// UTF-8 text from outside: cutting it between characters, and making it safe to show. Decodes
// strictly (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Pure functions:
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pelab {

struct Utf8Character {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;  // false: the byte is not UTF-8
};

// The character at the start of a text that is not empty.
Utf8Character FirstCharacter(std::string_view text);

bool IsUtf8(std::string_view text);

// At most `bytes` of the text, cut between characters and then followed by "…"; each byte that is
// not UTF-8 becomes "?", and so does NUL, where SQL's functions end a text. Every text that is
// stored, sent or put into a message is shortened by this function: nobody can read a protobuf
// message with half a character in it.
std::string Shorten(std::string_view text, std::size_t bytes);
// The text, with "?" for each byte that is not UTF-8.
std::string ValidUtf8(std::string text);

// Whether a character may not reach a terminal as it is: control characters (C0, C1), marks that
// change the direction of text, separators of lines, and invisible characters.
bool IsUnsafeToShow(char32_t character);

// Makes data safe to show: control characters, escape sequences, invisible direction marks and
// bytes that are not UTF-8 become visible text such as \n, \t, \x1b, \u202e. With `keep_lines`,
// newlines and tabs stay. Escaping twice changes nothing more.
std::string Escape(std::string_view text, bool keep_lines = false);

// The unsafe characters of a JSON text become \u and four digits, which mean the same to its
// reader; each byte that is not UTF-8 becomes \ufffd. Newlines and tabs between values stay.
std::string EscapeJson(std::string_view json);

}  // namespace pelab
