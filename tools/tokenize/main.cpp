// lamina-tokenize: text files to an HDF5 token set.
#include "support/run_tool.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

#include <lamina/base/text.hpp>
#include <lamina/data/text_rule_options.hpp>
#include <lamina/data/tokenize_files.hpp>
#include <lamina/data/tokenizer_identity.hpp>
#include <lamina/tokenizer/tokenizer.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

// One live line on a terminal, a line now and then in a log.
class ProgressLine {
 public:
  void show(const lamina::TokenizeProgress& progress) {
    const Clock::time_point now = Clock::now();
    if (now - last_ < (terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000))) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double rate = static_cast<double>(progress.bytes) / seconds;
    const double left = static_cast<double>(progress.total_bytes - progress.bytes) / rate;
    fmt::print(stderr, "{}{} of {}, {} tokens, {}/s, {} left{}", terminal_ ? "\r" : "",
               lamina::human_bytes(progress.bytes), lamina::human_bytes(progress.total_bytes), progress.tokens,
               lamina::human_bytes(static_cast<std::uint64_t>(rate)), lamina::human_seconds(left),
               terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
    shown_ = terminal_;
  }
  void clear() {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
    shown_ = false;
  }
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

struct Options {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string out;
  std::int64_t threads = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  bool append_eos = true;
  std::string format = "auto";
  lamina::TextRules rules;
  std::string ignore_keys;
};

lamina::TokenizeRequest request_of(const Options& options) {
  lamina::TokenizeRequest request;
  request.inputs.assign(options.inputs.begin(), options.inputs.end());
  if (options.format == "text") request.format = lamina::TextFormat::text;
  if (options.format == "jsonl") request.format = lamina::TextFormat::json_lines;
  request.output = options.out;
  request.identity = lamina::identify_tokenizer(options.tokenizer);
  request.append_eos = options.append_eos;
  request.rules = options.rules;
  request.rules.ignored_keys = lamina::parse_key_list(options.ignore_keys);
  request.threads = static_cast<std::size_t>(options.threads);
  return request;
}

void tokenize(const Options& options) {
  lamina::TokenizeRequest request = request_of(options);
  const lamina::Tokenizer tokenizer = lamina::Tokenizer::named(options.tokenizer);
  ProgressLine line;
  request.progress = [&](const lamina::TokenizeProgress& progress) { line.show(progress); };
  try {
    const lamina::TokenizeProgress done = lamina::tokenize_files(request, tokenizer);
    line.clear();
    for (const std::string& note : done.notes) fmt::print(stderr, "{}\n", note);
    fmt::print(stderr, "{}: {} tokens in {} documents from {}, {:.2f} s, {}/s\n", options.out, done.tokens,
               done.documents, lamina::human_bytes(done.bytes), line.seconds(),
               lamina::human_bytes(static_cast<std::uint64_t>(static_cast<double>(done.bytes) / line.seconds())));
  } catch (...) {
    line.clear();
    throw;
  }
}

}  // namespace

int main(int count, char** values) {
  Options options;
  lamina::ArgumentParser parser(
      "lamina-tokenize",
      "Turns text into an HDF5 token set for training. A .txt file is one document; each line of a .jsonl "
      "file, or element of a list in a .json file, is one: a text at \"text\", a conversation at \"messages\" or "
      "\"conversations\", or a \"prompt\" and its "
      "\"completion\". Each may be compressed (.gz).");
  parser.example("lamina-tokenize --tokenizer byte --out train.h5 inputs/king_james_train.txt");
  parser.example("lamina-tokenize --tokenizer inputs/chat_tokenizer --out chats.h5 inputs/chat.jsonl");
  parser.option("tokenizer", options.tokenizer, "byte|PATH", "byte, or a tokenizer.json or its folder",
                lamina::ArgumentParser::Need::required);
  parser.option("out", options.out, "FILE.h5", "the token set to write", lamina::ArgumentParser::Need::required);
  parser.option("threads", options.threads, "N", "threads that encode", lamina::IntegerRange{1, 4096});
  parser.option("append-eos", options.append_eos, "end every document with the tokenizer's end-of-text token");
  lamina::add_text_rule_options(parser, '-', options.rules, options.ignore_keys);
  parser.choice("format", options.format, {"auto", "text", "jsonl"}, "what the inputs are; auto goes by their names");
  parser.positionals("INPUT", options.inputs, "text to read: .txt, .jsonl or .json, also .gz", 1);
  return lamina::run_tool(count, values, parser, [&] { tokenize(options); });
}
