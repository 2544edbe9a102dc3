#include "gzip_bound.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>

#include <zlib.h>

#include "holmes/base/assert.hpp"

namespace holmes::launcher {
namespace {

constexpr int kLevel = 9;
constexpr int kGzipWindow = 15 + 16;  // the largest window, in gzip's format rather than zlib's
constexpr int kMemoryLevel = 8;

}  // namespace

double gzip_nats_per_byte(std::span<const std::byte> text) {
  if (text.empty()) return 0;
  z_stream stream{};
  const int begun =
      ::deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY);
  HOLMES_ASSERT(begun == Z_OK, "zlib refused to start");
  std::array<unsigned char, 65536> out;
  std::span<const std::byte> rest = text;
  int state = Z_OK;
  while (state == Z_OK) {
    const auto part = std::min<std::size_t>(rest.size(), std::numeric_limits<uInt>::max() / 2);
    // zlib's interface is older than const; it does not write to its input.
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(rest.data()));
    stream.avail_in = static_cast<uInt>(part);
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    state = ::deflate(&stream, part == rest.size() ? Z_FINISH : Z_NO_FLUSH);
    rest = rest.subspan(part - stream.avail_in);
  }
  const auto bytes = static_cast<double>(stream.total_out);
  ::deflateEnd(&stream);
  HOLMES_ASSERT(state == Z_STREAM_END, "zlib did not finish");
  return bytes * 8.0 * std::numbers::ln2 / static_cast<double>(text.size());
}

}  // namespace holmes::launcher
