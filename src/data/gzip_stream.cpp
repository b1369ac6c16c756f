#include "gzip_stream.hpp"

#include "file_kind.hpp"

#include <algorithm>
#include <utility>

#include <lamina/base/error.hpp>

#include <fmt/format.h>
#include <zlib.h>

namespace lamina::detail {

namespace {

constexpr std::size_t input_bytes = std::size_t{1} << 16;

[[noreturn]] void refuse(const InputFile& file, std::string_view problem, std::string_view why) {
  throw DataError(one_line(fmt::format("{}: {}", file.name(), problem), why, "copy or make the file again"));
}

}  // namespace

struct GzipStream::Inflater {
  explicit Inflater(const InputFile& file) {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (::inflateInit2(&state, gzip_only) != Z_OK) refuse(file, "cannot be inflated", "zlib does not start");
  }
  ~Inflater() { ::inflateEnd(&state); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream state{};
};

GzipStream::GzipStream(InputFile file) : file_(std::move(file)) {
  if (looks_like_gzip(file_.head(3))) {
    inflater_ = std::make_unique<Inflater>(file_);
    input_.resize(input_bytes);
  }
  ended_ = file_.size() == 0;
}
GzipStream::GzipStream(GzipStream&&) noexcept = default;
GzipStream::~GzipStream() = default;

void GzipStream::read(std::size_t most, std::string& out) {
  if (ended_) return;
  if (inflater_) return inflate(most, out);
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, file_.size() - taken_));
  const std::size_t old = out.size();
  out.resize(old + count);
  file_.read_at(taken_, std::as_writable_bytes(std::span(out).subspan(old)));
  taken_ += count;
  ended_ = taken_ == file_.size();
}

void GzipStream::refill() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(input_.size(), file_.size() - taken_));
  file_.read_at(taken_, std::span(input_).first(count));
  taken_ += count;
  inflater_->state.next_in = reinterpret_cast<Bytef*>(input_.data());
  inflater_->state.avail_in = static_cast<uInt>(count);
}

// What may follow a member: another one, or zeros that fill a block of a tape.
void GzipStream::end_member() {
  z_stream& state = inflater_->state;
  while (true) {
    if (state.avail_in == 0 && taken_ < file_.size()) refill();
    if (state.avail_in == 0) break;
    if (*state.next_in != 0) break;
    ++state.next_in;
    --state.avail_in;
  }
  ended_ = state.avail_in == 0;
  if (!ended_) ::inflateReset(&state);
}

void GzipStream::inflate(std::size_t most, std::string& out) {
  z_stream& state = inflater_->state;
  const std::size_t old = out.size();
  out.resize(old + most);
  std::size_t done = 0;
  while (done < most && !ended_) {
    if (state.avail_in == 0) {
      if (taken_ == file_.size()) refuse(file_, "the gzip data end in the middle", "a part of the file is missing");
      refill();
    }
    const std::size_t room = std::min(most - done, std::size_t{1} << 30);
    state.next_out = reinterpret_cast<Bytef*>(out.data() + old + done);
    state.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&state, Z_NO_FLUSH);
    done += room - state.avail_out;
    if (result == Z_STREAM_END) {
      end_member();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      refuse(file_, fmt::format("damaged gzip data before byte {}", taken_ - state.avail_in),
             state.msg == nullptr ? "zlib cannot inflate them" : state.msg);
    }
  }
  out.resize(old + done);
}

}  // namespace lamina::detail
