// `lamina chat`: a conversation with a model in the terminal, or with questions from a pipe, one a line.
#include "chat_session.hpp"
#include "commands.hpp"
#include "local_model.hpp"
#include "run_inputs.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <lamina/base/error.hpp>
#include <lamina/model/model_config.hpp>

#include <fmt/format.h>
#include <unistd.h>

namespace lamina {

namespace {

constexpr std::int64_t default_context = 4096;  // the cache of a long-context model would fill the memory

struct ChatArguments {
  TextOptions text;
  std::string system;
  ChatSettings settings;
  std::int64_t context = 0;
};

std::optional<std::string> parse(ChatArguments& a, const std::vector<std::string>& arguments) {
  ArgumentParser parser("lamina chat",
                        "A conversation with a model that was trained on conversations, through its chat template. "
                        "Reads a turn a line from the terminal or from standard input and prints the answers; a line "
                        "that ends in \\ goes on in the next. /reset forgets the conversation, /exit ends it; Ctrl-C "
                        "cuts an answer short.");
  parser.example("lamina chat --model runs/chat/model");
  parser.example("lamina chat --model runs/chat/model --system \"You answer in one sentence.\" --temperature 0.3");
  parser.example("echo \"Who are you?\" | lamina chat --model runs/chat/model");
  declare_model(parser, a.text);
  parser.option("system", a.system, "TEXT", "the system's message; without it the template's own, if it has one");
  parser.option("date", a.settings.date, "YYYY-MM-DD", "today, for chat templates that ask for it; empty: a fixed one");
  declare_sampling(parser, a.text);
  parser.option("context", a.context, "N",
                fmt::format("tokens of the whole conversation; 0: the model's positions, at most {}", default_context),
                {0, 100'000'000});
  declare_machine(parser, a.text);
  return parser.parse(arguments);
}

volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }

// Ctrl-C is a wish: reading ends with an error, generation looks at the flag.
void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

// One turn; nothing at the end of input or at an interrupt.
std::optional<std::string> read_turn(bool interactive) {
  std::string turn;
  for (bool first = true;; first = false) {
    if (interactive) {
      std::fputs(first ? "> " : "... ", stdout);
      std::fflush(stdout);
    }
    char* line = nullptr;
    std::size_t capacity = 0;
    const ssize_t length = ::getline(&line, &capacity, stdin);
    const std::unique_ptr<char, decltype(&std::free)> owner(line, &std::free);
    if (length < 0) return turn.empty() ? std::nullopt : std::optional(turn);
    std::string_view text(line, static_cast<std::size_t>(length));
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    const bool goes_on = text.ends_with('\\');
    if (goes_on) text.remove_suffix(1);
    turn += text;
    if (!goes_on) return turn;
    turn += '\n';
  }
}

bool write_text(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 &&
         interrupted == 0;
}

void answer(ChatSession& session, const std::string& turn, bool interactive) {
  try {
    const StopReason reason = session.ask(turn, write_text);
    std::fputs("\n", stdout);
    std::fflush(stdout);
    if (reason == StopReason::max_new_tokens) fmt::print(stderr, "[cut at --max_tokens]\n");
    if (reason == StopReason::max_positions) fmt::print(stderr, "[the conversation is full: /reset begins anew]\n");
  } catch (const Error& error) {
    if (!interactive) throw;
    fmt::print(stderr, "error: {}\n", error.what());
  }
}

int converse(ChatSession& session, bool interactive) {
  while (const std::optional<std::string> turn = read_turn(interactive)) {
    if (turn->find_first_not_of(" \t") == std::string::npos) continue;
    if (*turn == "/exit" || *turn == "/quit") return 0;
    if (*turn == "/reset") {
      session.reset();
      if (interactive) fmt::print(stderr, "[forgotten]\n");
    } else if (*turn == "/help") {
      fmt::print(stderr, "/reset forgets the conversation, /exit ends; Ctrl-C cuts an answer short\n");
    } else {
      answer(session, *turn, interactive);
    }
    if (interrupted != 0 && !interactive) break;
    interrupted = 0;
    if (std::ferror(stdout) != 0) return 0;  // nobody listens
  }
  if (interactive) std::fputs("\n", stdout);
  return interrupted != 0 ? 128 + SIGINT : 0;
}

}  // namespace

int chat_command(const std::vector<std::string>& arguments) {
  ChatArguments a;
  if (const auto text = parse(a, arguments)) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  const ModelConfig config = read_model_config(a.text.model);
  Backend backend = make_backend(a.text.backend, a.text.threads);
  const TokenizerChoice choice = choose_tokenizer(a.text.tokenizer, a.text.model);
  const LoadedModel model = load_model(a.text.model, *backend.device);
  const std::int64_t context = a.context > 0 ? a.context : std::min(default_context, config.max_positions);
  ChatSession session(model, backend, choice.tokenizer, context, a.system, a.text, a.settings);
  const bool interactive = ::isatty(STDIN_FILENO) == 1;
  catch_interrupts();
  if (interactive) {
    fmt::print(stderr, "[{}: {} tokens of conversation; /exit ends, /reset forgets]\n", a.text.model, context);
  }
  return converse(session, interactive);
}

}  // namespace lamina
