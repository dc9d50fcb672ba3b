// Sizes of memory as people write and read them.
#ifndef CREMA_BASE_BYTE_SIZE_H_
#define CREMA_BASE_BYTE_SIZE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace crema {

// "812 B", "1.5 KiB", "23.4 MiB".
std::string FormatBytes(size_t bytes);

// Of "600MB", "1.5 GiB", "4096": a number, and B (also where nothing is written), KB, MB, GB, TB (powers of 1000) or
// KiB, MiB, GiB, TiB (of 1024), in any case. Empty for anything else, and for what no size_t holds.
std::optional<size_t> ParseBytes(std::string_view text);

}  // namespace crema

#endif  // CREMA_BASE_BYTE_SIZE_H_
