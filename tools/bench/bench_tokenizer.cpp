// lamina-bench-tokenizer TOKENIZER TEXT [SECONDS]: how fast one core tokenizes.
//
// TOKENIZER is a tokenizer.json, its folder, or "byte"; TEXT a file, cut into documents of whole lines of at least 4
// KiB. Repeats for SECONDS (default 2) and prints one JSON line: the best pass in MB/s, tokens, and an XXH3-64 of the
// ids so that two programs can see that they did the same work (tokenizer_peer.py). "chat_ratio" is the time of the
// text's first 4000 lines as turns of one conversation over the time of that conversation's text as plain text; null
// without a chat template.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include <lamina/base/failure.hpp>
#include <lamina/base/file.hpp>
#include <lamina/base/hash.hpp>
#include <lamina/tokenizer/chat_template.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <fmt/format.h>

namespace {

using namespace lamina;

std::vector<std::string_view> cut_documents(std::string_view text) {
  constexpr std::size_t document_bytes = 4096;
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const std::size_t line_end =
        text.size() <= document_bytes ? std::string_view::npos : text.find('\n', document_bytes - 1);
    const std::size_t size = line_end == std::string_view::npos ? text.size() : line_end + 1;
    documents.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return documents;
}

template <typename Work>
double best_of_three(Work&& work) {
  double best = 1e30;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

std::string chat_ratio(const Tokenizer& tokenizer, std::string_view text) {
  if (!tokenizer.chat_template()) return "null";
  constexpr std::size_t most = 4000;
  std::vector<ChatMessage> messages;
  while (!text.empty() && messages.size() < most) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0)
      messages.push_back({messages.size() % 2 == 0 ? "user" : "assistant", std::string(text.substr(0, end))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const ChatTemplate chat = ChatTemplate::of(tokenizer);
  std::string plain;
  for (const auto& segment : chat.render(messages, false)) plain += segment.text;
  auto workspace = tokenizer.make_workspace();
  std::vector<std::int32_t> ids;
  const double plain_s = best_of_three([&] {
    ids.clear();
    tokenizer.encode_append(plain, false, workspace, ids);
  });
  const double chat_s = best_of_three([&] { (void)chat.encode(tokenizer, messages, workspace); });
  return fmt::format("{:.2f}", chat_s / plain_s);
}

void run(const std::string& tokenizer_name, const std::string& text_path, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point load_start = Clock::now();
  const Tokenizer tokenizer = Tokenizer::named(tokenizer_name);
  const double load_s = since(load_start);
  const std::string text = read_file(text_path);
  const auto documents = cut_documents(text);
  std::vector<std::int32_t> ids;
  double best = 1e30;
  int passes = 0;
  for (const Clock::time_point start = Clock::now(); passes < 2 || since(start) < seconds; ++passes) {
    ids.clear();
    auto workspace = tokenizer.make_workspace();  // as in a new thread: the cache starts cold
    const Clock::time_point pass = Clock::now();
    for (const auto document : documents) tokenizer.encode_append(document, false, workspace, ids);
    best = std::min(best, since(pass));
  }
  fmt::print(
      "{{\"mb_s\": {:.2f}, \"bytes\": {}, \"documents\": {}, \"tokens\": {}, \"xxh3\": \"{:016x}\", \"load_s\": "
      "{:.3f}, "
      "\"passes\": {}, \"chat_ratio\": {}}}\n",
      static_cast<double>(text.size()) / best / 1e6, text.size(), documents.size(), ids.size(),
      xxh3_64(ids.data(), ids.size() * sizeof(ids[0])), load_s, passes, chat_ratio(tokenizer, text));
}

}  // namespace

int main(int argc, char** argv) {
  const std::span arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() < 3 || arguments.size() > 4) {
    fmt::print(stderr, "usage: lamina-bench-tokenizer TOKENIZER TEXT [SECONDS]\n");
    return static_cast<int>(ExitCode::usage);
  }
  return run_program([&] {
    run(arguments[1], arguments[2], arguments.size() == 4 ? std::strtod(arguments[3], nullptr) : 2.0);
    return 0;
  });
}
