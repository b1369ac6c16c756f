#include "record_text.hpp"

#include <sstream>

#include <lamina/base/check.hpp>

#include <fmt/format.h>

namespace lamina {

std::string to_text(const ShardFileRecord& record) {
  std::string text = fmt::format("{} {} {}", record.name, record.bytes, record.slices.size());
  for (const SliceRecord& slice : record.slices) {
    const bool first = slice.moments.has_value(), second = first && slice.moments->exp_avg_sq;
    text += fmt::format(" {} {} {} {} {}", slice.unit, slice.range.begin, slice.range.end, slice.param,
                        (first ? 1 : 0) + (second ? 1 : 0));
    if (first) text += fmt::format(" {}", slice.moments->exp_avg);
    if (second) text += fmt::format(" {}", *slice.moments->exp_avg_sq);
    text += slice.ema ? fmt::format(" 1 {}", *slice.ema) : " 0";
  }
  return text;
}

ShardFileRecord record_from_text(const std::string& text) {
  std::istringstream in(text);
  ShardFileRecord record;
  std::size_t count = 0;
  in >> record.name >> record.bytes >> count;
  for (std::size_t i = 0; i < count && in; ++i) {
    SliceRecord slice;
    int moments = 0, averages = 0;
    in >> slice.unit >> slice.range.begin >> slice.range.end >> slice.param >> moments;
    if (moments > 0) in >> slice.moments.emplace().exp_avg;
    if (moments > 1) in >> slice.moments->exp_avg_sq.emplace();
    in >> averages;
    if (averages > 0) in >> slice.ema.emplace();
    record.slices.push_back(slice);
  }
  require(!in.fail() && record.slices.size() == count, "a shard record arrives whole");
  return record;
}

}  // namespace lamina
