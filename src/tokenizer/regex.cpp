#include "regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <stdexcept>

#include <lamina/base/check.hpp>
#include <lamina/base/error.hpp>

#include <fmt/format.h>
#include <pcre2.h>

namespace lamina {

namespace {

constexpr std::size_t first_stack = 64 * 1024;
constexpr std::size_t largest_stack = 64 * 1024 * 1024;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

void RegexScratch::Free::operator()(void* memory) const noexcept {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(memory));
}
void RegexScratch::FreeContext::operator()(void* memory) const noexcept {
  pcre2_match_context_free(static_cast<pcre2_match_context*>(memory));
}
void RegexScratch::FreeStack::operator()(void* memory) const noexcept {
  pcre2_jit_stack_free(static_cast<pcre2_jit_stack*>(memory));
}

RegexScratch::RegexScratch()
    : match_data_(pcre2_match_data_create(1, nullptr)),
      stack_(pcre2_jit_stack_create(first_stack, largest_stack, nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  if (!match_data_ || !context_) throw std::bad_alloc();
  // Without a JIT stack (no executable memory) matching falls back to PCRE2's default.
  if (stack_) {
    pcre2_jit_stack_assign(static_cast<pcre2_match_context*>(context_.get()), nullptr, stack_.get());
  }
}

void Regex::Free::operator()(void* code) const noexcept { pcre2_code_free(static_cast<pcre2_code*>(code)); }

Regex::Regex(std::string_view pattern) { compile(translate_pattern(pattern)); }

Regex Regex::literal(std::string_view text) {
  Regex regex;
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("\\^$.[]|()?*+{}#- \t\n\r\v\f&~").find(c) != std::string_view::npos) escaped.push_back('\\');
    escaped.push_back(c);
  }
  regex.compile(escaped);
  return regex;
}

void Regex::compile(std::string_view translated) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code_.reset(pcre2_compile(units(translated), translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                            &error, &offset, context.get()));
  if (!code_) {
    throw std::invalid_argument(fmt::format("the pattern does not compile ({} near '{}')", error_text(error),
                                            translated.substr(0, offset).substr(offset > 24 ? offset - 24 : 0)));
  }
  jit_ = pcre2_jit_compile(static_cast<pcre2_code*>(code_.get()), PCRE2_JIT_COMPLETE) == 0;
}

std::optional<Regex::Match> Regex::find(std::string_view text, std::size_t from, RegexScratch& scratch) const {
  auto* code = static_cast<pcre2_code*>(code_.get());
  auto* data = static_cast<pcre2_match_data*>(scratch.match_data_.get());
  auto* context = static_cast<pcre2_match_context*>(scratch.context_.get());
  const int rc = jit_ ? pcre2_jit_match(code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, data, context)
                      : pcre2_match(code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
  if (rc == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (rc < 0) {
    throw DataError(one_line("cannot split the text",
                             fmt::format("the tokenizer's pattern gave up ({})", error_text(rc)),
                             "shorten the document or check the pattern in tokenizer.json"));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data);
  // \K could move the start behind the end; translate_pattern refuses it.
  require(offsets[0] <= offsets[1] && offsets[1] <= text.size(), "a match lies inside the text");
  return Match{offsets[0], offsets[1]};
}

}  // namespace lamina
