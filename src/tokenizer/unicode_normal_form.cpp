#include "unicode_normal_form.hpp"

#include "unicode_tables.hpp"
#include "utf8.hpp"

#include <memory>
#include <new>
#include <string_view>

#include <lamina/base/check.hpp>

#include <utf8proc.h>

namespace lamina::unicode {

namespace {

utf8proc_option_t options(NormalForm form) {
  int flags = UTF8PROC_STABLE;
  flags |= form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) flags |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(flags);
}

struct Release {
  void operator()(utf8proc_uint8_t* memory) const noexcept { std::free(memory); }
};

void append_normalized(std::string& out, std::string_view text, NormalForm form) {
  if (text.empty()) return;
  utf8proc_uint8_t* raw = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &raw, options(form));
  const std::unique_ptr<utf8proc_uint8_t, Release> result(raw);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  require(size >= 0, "valid UTF-8 can be normalised");
  out.append(reinterpret_cast<const char*>(result.get()), static_cast<std::size_t>(size));
}

// Size of the prefix whose characters are their own normal form and combine with nothing before them: ASCII, and for
// NFC all below U+0300.
std::size_t inert_prefix(std::string_view text, NormalForm form) {
  const unsigned char limit = form == NormalForm::nfc ? 0xCC : 0x80;  // 0xCC leads U+0300
  std::size_t at = 0;
  while (at < text.size() && static_cast<unsigned char>(text[at]) < limit) ++at;
  return at;
}

}  // namespace

void normalize(std::string& text, NormalForm form) {
  std::string_view rest = text;
  std::size_t plain = inert_prefix(rest, form);
  if (plain == rest.size()) return;
  // The last character of a plain run may combine with a mark that follows.
  const auto step_back = [&](std::string_view from) {
    if (plain > 0) plain -= utf8::decode_last(from.substr(0, plain)).size;
  };
  step_back(rest);
  std::string out(rest.substr(0, plain));
  out.reserve(text.size() + text.size() / 8);
  rest.remove_prefix(plain);
  std::size_t run = 0;  // of characters to hand over
  while (run < rest.size()) {
    const utf8::Decoded decoded = utf8::decode_first(rest.substr(run));
    if (!is_inert(decoded.code)) {
      run += decoded.size;
      continue;
    }
    append_normalized(out, rest.substr(0, run), form);
    out.append(rest.substr(run, decoded.size));
    rest.remove_prefix(run + decoded.size);
    run = 0;
  }
  append_normalized(out, rest, form);
  text = std::move(out);
}

}  // namespace lamina::unicode
