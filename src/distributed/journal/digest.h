// A 64-bit fingerprint of bytes: XXH3 (xxHash's specification), the same on every machine.
#ifndef CREMA_DISTRIBUTED_JOURNAL_DIGEST_H_
#define CREMA_DISTRIBUTED_JOURNAL_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace crema {

uint64_t DigestOf(std::span<const std::byte> bytes);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_JOURNAL_DIGEST_H_
