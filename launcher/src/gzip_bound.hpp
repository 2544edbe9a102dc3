#pragma once

// What `gzip -9` needs for a text: the figure that a model of the text must beat.

#include <cstddef>
#include <span>

namespace holmes::launcher {

/// Nats per byte of the gzip file that zlib's deflate makes at level 9; 0 for an empty text.
double gzip_nats_per_byte(std::span<const std::byte> text);

}  // namespace holmes::launcher
