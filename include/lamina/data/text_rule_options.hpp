// The command line's options for TextRules, the same in every program that reads text.
#pragma once

#include <string>

#include <lamina/config/argument_parser.hpp>
#include <lamina/data/text_rules.hpp>

namespace lamina {

// Adds options for the keys of JSON lines and the date of chat templates. Both targets must outlive parsing; afterwards
// `ignored_keys` holds a list for parse_key_list(). `hyphen` stands between the words of a name.
void add_text_rule_options(ArgumentParser& parser, char hyphen, TextRules& rules, std::string& ignored_keys);

}  // namespace lamina
