#include "chat_request.hpp"
#include "chat_turns.hpp"
#include "json_node.hpp"
#include "token_places.hpp"
#include "utf8.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include <lamina/base/error.hpp>
#include <lamina/tokenizer/chat_template.hpp>

#include <fmt/format.h>

namespace lamina {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_template = std::size_t{1} << 20;

[[noreturn]] void refuse(std::string_view why, std::string_view fix) {
  throw DataError(one_line("cannot use the chat template", why, fix));
}

std::tm parse_date(const std::string& date) {
  std::tm out{};
  const char* end = date.size() == 10 ? ::strptime(date.c_str(), "%Y-%m-%d", &out) : nullptr;
  if (end == nullptr || *end != '\0') {
    throw UsageError(one_line(fmt::format("{} is no date", in_quotes(date)), "dates are written as YYYY-MM-DD",
                              "give one such as 2024-07-26"));
  }
  return out;
}

jinja::Value date_text(const std::tm& date, const jinja::Value* format) {
  if (format == nullptr || format->text() == nullptr) throw jinja::TemplateError("strftime_now takes a format");
  std::array<char, 512> out{};
  const std::size_t size = std::strftime(out.data(), out.size(), format->text()->bytes.c_str(), &date);
  return jinja::Value(std::string(out.data(), size));
}

Json turn(const char* role, Json content) { return {{"role", role}, {"content", std::move(content)}}; }

Json conversation_of(std::span<const ChatMessage> messages) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    if (utf8::valid_prefix(message.role) != message.role.size()) refuse("a role is not UTF-8", "convert the data");
    list.push_back(Json::object({{"role", message.role}, {"content", message.content}}));
  }
  return Json::object({{"messages", std::move(list)}});
}

}  // namespace

struct ChatTemplate::Program {
  jinja::Syntax syntax;
  std::string bos, eos, date;
  std::tm day{};
  bool date_given = false;
  std::vector<std::string> ignored_keys;
  ChatHeaders headers;
  bool flatten = false;  // content must be text

  [[nodiscard]] bool names(const char* name) const {
    return std::ranges::find(syntax.names, name) != syntax.names.end();
  }

  // Throws TemplateError for what the template refuses.
  jinja::Output run(ChatRequest& request, bool generation, jinja::Usage& usage) const {
    request.set("add_generation_prompt", jinja::Value(generation));
    if (!bos.empty()) request.set("bos_token", jinja::Value(bos));
    if (!eos.empty()) request.set("eos_token", jinja::Value(eos));
    request.set("strftime_now", jinja::Value(jinja::Callable([this](const jinja::Arguments& arguments) {
                  return date_text(day, jinja::argument(arguments, 0, "format"));
                })));
    const auto given = [](const auto& variable) { return variable.name == "date_string"; };
    if (date_given && std::ranges::none_of(request.variables(), given)) {
      const jinja::Value format(std::string("%d %b %Y"));
      request.set("date_string", date_text(day, &format));
    }
    return jinja::Evaluator(usage).run(syntax.statements, request.variables());
  }

  // The text of a small conversation; nothing if the template refuses it.
  [[nodiscard]] std::optional<jinja::Output> probe(const Json& messages, bool generation) const {
    ChatRequest request(Json::object({{"messages", messages}}), {}, false);
    jinja::Usage usage = request.usage();
    try {
      return run(request, generation, usage);
    } catch (const jinja::TemplateError& error) {
      if (error.lacks_token()) refuse(error.what(), "add it to tokenizer_config.json");
      return std::nullopt;
    }
  }

  void learn() {
    const Json question = Json::array({turn("user", "Question")});
    Json answered = question;
    answered.push_back(turn("assistant", "Answer"));
    const auto asked = probe(question, false), prompted = probe(question, true), whole = probe(answered, false);
    if (asked && prompted && prompted->text.starts_with(asked->text)) {
      headers.prompt = prompted->text.substr(asked->text.size());
    }
    if (whole && !whole->turns.empty()) {
      const jinja::Turn& last = whole->turns.back();
      if (last.message == 1 && last.has_own()) {
        const std::string before = whole->text.substr(last.begin, last.own_first - last.begin);
        headers.answer = before.substr(0, before.find_last_not_of(' ') + 1);
      }
    }
    const Json parts =
        Json::array({turn("user", Json::array({Json::object({{"type", "text"}, {"text", "Question"}})}))});
    const auto from_parts = probe(parts, false);
    // Some templates fail on a list of parts, some leave it out, and some write Python's form of it.
    const auto writes = [&](const char* text) { return from_parts->text.find(text) != std::string::npos; };
    flatten = !from_parts || !writes("Question") || writes("{'type'");
  }
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

ChatTemplate ChatTemplate::parse(std::string_view text, std::string bos, std::string eos,
                                 const ChatSettings& settings) {
  if (text.size() > longest_template) refuse(fmt::format("it is longer than {} bytes", longest_template), "shorten it");
  if (utf8::valid_prefix(text) != text.size()) refuse("it is not UTF-8", "convert it");
  auto program = std::make_shared<Program>();
  try {
    program->syntax = jinja::parse(text);
  } catch (const jinja::TemplateError& error) {
    refuse(error.what(), "check the tokenizer's chat template");
  }
  program->bos = std::move(bos);
  program->eos = std::move(eos);
  program->date_given = !settings.date.empty();
  program->date = program->date_given ? settings.date : std::string(default_chat_date);
  program->day = parse_date(program->date);
  program->ignored_keys = settings.ignored_keys;
  if (program->date_given && !program->names("strftime_now") && !program->names("date_string")) {
    throw UsageError(one_line("a date is given", "the chat template does not ask for one", "leave it out"));
  }
  program->learn();
  return ChatTemplate(std::move(program));
}

ChatTemplate ChatTemplate::of(const Tokenizer& tokenizer, const ChatSettings& settings) {
  if (!tokenizer.chat_template()) {
    refuse("the tokenizer has none", "add chat_template to tokenizer_config.json or use data with a text field");
  }
  const auto text_of = [&](std::optional<std::int32_t> id) { return id ? tokenizer.token_of(*id).value_or("") : ""; };
  return parse(*tokenizer.chat_template(), text_of(tokenizer.bos()), text_of(tokenizer.eos()), settings);
}

bool ChatTemplate::asks_for_date() const { return program_->names("strftime_now"); }
const std::string& ChatTemplate::date() const { return program_->date; }

std::vector<ChatSegment> ChatTemplate::render(const Json& conversation, bool add_generation_prompt) const {
  ChatRequest request(conversation, program_->ignored_keys, program_->flatten);
  jinja::Usage usage = request.usage();
  jinja::Output output;
  try {
    output = program_->run(request, add_generation_prompt, usage);
  } catch (const jinja::TemplateError& error) {
    throw DataError(one_line("cannot render the conversation", fmt::format("chat template, {}", error.what()),
                             "change the conversation or drop it"));
  }
  request.check(usage);
  return segments_of(output.text, trained_ranges(output, request.messages(), program_->headers));
}

std::vector<ChatSegment> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  return render(conversation_of(messages), add_generation_prompt);
}

ChatIds ChatTemplate::encode(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                             TokenizerWorkspace& workspace) const {
  return encode(tokenizer, conversation_of(messages), workspace);
}

ChatIds ChatTemplate::encode(const Tokenizer& tokenizer, const Json& conversation,
                             TokenizerWorkspace& workspace) const {
  return encode_segments(tokenizer, render(conversation, false), workspace);
}

ChatIds encode_segments(const Tokenizer& tokenizer, std::span<const ChatSegment> segments,
                        TokenizerWorkspace& workspace) {
  std::string text;
  std::vector<std::size_t> boundaries;
  for (const auto& segment : segments) {
    text += segment.text;
    boundaries.push_back(text.size());
  }
  ChatIds result;
  tokenizer.encode_append(text, false, workspace, result.ids);
  const std::vector<std::size_t> ends = token_ends(tokenizer, text, result.ids, boundaries, workspace);
  std::size_t segment = 0, begin = 0;
  for (const std::size_t end : ends) {
    while (segment + 1 < segments.size() && boundaries[segment] <= begin) ++segment;
    bool trained = !segments.empty() && segments[segment].trained;
    for (std::size_t i = segment; i + 1 < segments.size() && boundaries[i] < end; ++i) {
      trained = trained || segments[i + 1].trained;
    }
    result.trained.push_back(trained ? 1 : 0);
    begin = end;
  }
  return result;
}

}  // namespace lamina
