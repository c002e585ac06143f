// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules for documents and manual pages, as text in, findings out: table cells that can be read,
// links that lead somewhere, and plain words (docs/glossary.md, "Words to avoid").
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace uet::tidy {

// "PATH:LINE: what is wrong", one for each place.
using Findings = std::vector<std::string>;

// Table cells of at most kMaxCell characters (not bytes), outside code blocks.
inline constexpr std::size_t kMaxCell = 160;
Findings check_cells(std::string_view path, std::string_view markdown);

// Targets of links to files, relative to the folder of `path`, for which `exists` says no. Links to
// other hosts, and to headings of the same page, are not looked at.
Findings check_links(std::string_view path, std::string_view markdown,
                     const std::function<bool(const std::string& path)>& exists);

// The phrases in the first column of the table below "## Words to avoid", each a list of words.
// A word of one letter must have the same case in a text, any other may be in either.
using Phrases = std::vector<std::vector<std::string>>;
Phrases words_to_avoid(std::string_view glossary);

// Names in `text` that begin with `prefix` and go on with letters of the same case, digits and _,
// each once, with the line of the first. A name that ends with _ stands for all that begin so.
std::map<std::string, std::size_t> names_in(std::string_view text, std::string_view prefix);

// Such names of `document` that `manual` does not have.
Findings check_names(std::string_view path, std::string_view document, std::string_view prefix,
                     std::string_view manual);

enum class Markup { Markdown, Manual, Cpp, Script };

// Phrases to avoid, statements that begin with What, Who or Those, and double genitives, outside
// code. `text` is Markdown, a manual page in man(7), C++: comments (//), string literals of
// several words, and the names of tests; or a script (shell, Python, CMake): comments (#), and the
// string literals of lines that print or describe an option.
Findings check_words(std::string_view path, std::string_view text, Markup markup,
                     const Phrases& phrases);

// Table cells and rows of counters that begin with a word which needs the row above: "It", "Its",
// "They", "Their", "The same", "Of these", "Also", "And", "Or", in any case. In a manual page the
// cells of "name|meaning" are looked at.
Findings check_first_words(std::string_view path, std::string_view text, Markup markup);

// Texts of refuse_NAME("...") in `cpp` that are not "fi_call: object: problem; remedy". A text that
// ends with ": " is completed elsewhere.
Findings check_refusals(std::string_view path, std::string_view cpp);

// Names of tests with more than kMaxTestName characters in `cpp`: the name without its suite. Only
// the first rule counts: Pds12_Ses3_Condition_Outcome has the length of Pds12_Condition_Outcome.
inline constexpr std::size_t kMaxTestName = 45;
Findings check_test_names(std::string_view path, std::string_view cpp);

// The list of files, and of folders of sources, with findings that have not been rewritten yet:
// lines "COUNT PATH", # begins a comment.
struct Backlog {
  std::map<std::string, std::size_t> counts;
  Findings complaints;
};
Backlog parse_backlog(std::string_view text);

// `found` findings for a file for which the backlog allows `allowed`: more is an error, fewer asks
// for a smaller number, so that the backlog only shrinks. Empty if both are equal.
std::string compare_with_backlog(const std::string& path, std::size_t found, std::size_t allowed);

}  // namespace uet::tidy
