#include "chat_turns.hpp"

#include <algorithm>

#include <lamina/base/error.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

bool is_answer(const std::vector<ChatRole>& messages, std::int64_t message) {
  return message >= 0 && messages[static_cast<std::size_t>(message)].role == "assistant";
}

// Where the header of an answer's turn ends. `own` is where the message's own bytes begin (the turn's size: there are
// none): no header goes beyond it, whatever the message says.
std::size_t header_size(std::string_view turn, std::size_t own, const ChatHeaders& headers) {
  const std::string& header = headers.prompt.empty() ? headers.answer : headers.prompt;
  if (turn.starts_with(header)) return header.size();
  // Something may stand before the header, such as a beginning-of-text token.
  const std::size_t found = turn.substr(0, own).find(header);
  if (found != std::string_view::npos) return found + header.size();
  const auto [in_turn, in_header] = std::ranges::mismatch(turn, header);
  const auto shared = static_cast<std::size_t>(in_turn - turn.begin());
  return shared > 0 || headers.prompt.empty() ? std::min(shared, own) : own;
}

ByteRange answer_range(const std::string& text, const jinja::Turn& turn, const ChatHeaders& headers) {
  const std::string_view whole = std::string_view(text).substr(turn.begin, turn.end - turn.begin);
  const std::size_t own = turn.has_own() ? turn.own_first - turn.begin : whole.size();
  const std::size_t begin = turn.begin + header_size(whole, own, headers);
  const std::size_t own_end = turn.has_own() ? std::max(turn.own_last, begin) : begin;
  // The end-of-turn token is what follows; white space behind it is not of the turn.
  return {begin, std::max(own_end, turn.begin + size_without_space(whole))};
}

// Parts of {% generation %} blocks that lie in turns whose weight is not 0.
std::vector<ByteRange> marked_ranges(const jinja::Output& output, const std::vector<ChatRole>& messages) {
  std::vector<ByteRange> out;
  auto turn = output.turns.begin();
  for (const auto& [begin, end] : output.marks) {
    while (turn != output.turns.end() && turn->end <= begin) ++turn;
    for (auto at = turn; at != output.turns.end() && at->begin < end; ++at) {
      if (at->message >= 0 && !messages[static_cast<std::size_t>(at->message)].trained) continue;
      out.emplace_back(std::max(begin, at->begin), std::min(end, at->end));
    }
  }
  return out;
}

}  // namespace

std::size_t size_without_space(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? 0 : last + 1;
}

std::vector<ByteRange> trained_ranges(const jinja::Output& output, const std::vector<ChatRole>& messages,
                                      const ChatHeaders& headers) {
  if (!output.marks.empty()) return marked_ranges(output, messages);
  std::vector<ByteRange> out;
  std::vector<std::uint8_t> seen(messages.size());
  for (const jinja::Turn& turn : output.turns) {
    if (!is_answer(messages, turn.message)) continue;
    seen[static_cast<std::size_t>(turn.message)] = 1;
    if (!messages[static_cast<std::size_t>(turn.message)].trained) continue;
    const ByteRange range = answer_range(output.text, turn, headers);
    if (range.second > range.first) out.push_back(range);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (seen[i] != 0 || !messages[i].trained || messages[i].role != "assistant") continue;
    throw DataError(
        one_line("cannot train on the conversation",
                 fmt::format("nothing tells where the answer of message {} stands in the template's text", i + 1),
                 "mark it with {% generation %} in the template"));
  }
  return out;
}

std::vector<ChatSegment> segments_of(const std::string& text, const std::vector<ByteRange>& trained) {
  std::vector<ChatSegment> out;
  const auto put = [&](std::size_t begin, std::size_t end, bool counts) {
    if (begin == end) return;
    if (out.empty() || out.back().trained != counts) out.push_back({{}, counts});
    out.back().text.append(text, begin, end - begin);
  };
  std::size_t at = 0;
  for (const auto& [begin, end] : trained) {
    put(at, begin, false);
    put(begin, end, true);
    at = end;
  }
  put(at, text.size(), false);
  return out;
}

}  // namespace lamina
