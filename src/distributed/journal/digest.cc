#include "distributed/journal/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace crema {

uint64_t DigestOf(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace crema
