// A code for the few values that matter: TOPK and THRESHOLD.
#include <atomic>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "distributed/codecs/codec_impl.h"
#include "distributed/codecs/codec_varint.h"

namespace crema {

namespace {

// Values are searched in chunks, whose results lie one after another whatever thread found them.
constexpr int64_t kChunk = int64_t{1} << 18, kTile = 4096;

int64_t ChunksOf(std::span<const float> values) { return (static_cast<int64_t>(values.size()) + kChunk - 1) / kChunk; }

// Writes the indices, plus `first`, of magnitudes of at least `least` to `found`, which has room for n + 1, and returns
// how many they are.
CREMA_MULTIVERSION int64_t FindInTile(const float* values, int64_t n, int32_t least, uint32_t first, uint32_t* found) {
  constexpr int64_t kGroup = 16;
  int64_t size = 0, i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    int32_t largest = 0;
    for (int64_t j = 0; j < kGroup; ++j) largest = std::max(largest, MagnitudeBits(values[i + j]));
    if (largest < least) continue;
    for (int64_t j = i; j < i + kGroup; ++j) {
      found[size] = first + static_cast<uint32_t>(j);
      size += MagnitudeBits(values[j]) >= least;
    }
  }
  for (; i < n; ++i) {
    found[size] = first + static_cast<uint32_t>(i);
    size += MagnitudeBits(values[i]) >= least;
  }
  return size;
}

// The indices, in order, of all values whose MagnitudeBits are at least `least`.
std::vector<uint32_t> FindAtLeast(std::span<const float> values, int32_t least) {
  const auto count = static_cast<int64_t>(values.size()), chunks = ChunksOf(values);
  std::vector<std::vector<uint32_t>> found(chunks);
  ParallelFor(chunks, 1, [&](int64_t begin, int64_t end) {
    uint32_t tile[kTile + 1];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      for (int64_t i = chunk * kChunk, last = std::min(count, i + kChunk); i < last; i += kTile) {
        const int64_t n =
            FindInTile(values.data() + i, std::min(kTile, last - i), least, static_cast<uint32_t>(i), tile);
        found[chunk].insert(found[chunk].end(), tile, tile + n);
      }
    }
  });
  if (chunks == 1) return std::move(found[0]);
  std::vector<uint32_t> all;
  size_t size = 0;
  for (const auto& part : found) size += part.size();
  all.reserve(size);
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Indices fit in 32 bits.
void CheckCount(size_t count) {
  CREMA_CHECK(count <= std::numeric_limits<uint32_t>::max()) << "a bucket of " << count << " values";
}

void Zero(std::span<float> values) {
  ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain,
              [&](int64_t begin, int64_t end) { std::fill(values.data() + begin, values.data() + end, 0.0f); });
}

class TopKCodec final : public Codec {
 public:
  explicit TopKCodec(double ratio) : Codec(CodecKind::kTopK), ratio_(ratio) {}

  size_t EncodedBytesAtMost(size_t count) const override {
    if (count == 0) return 0;
    const size_t k = Kept(count);
    return BytesOfVarint(k) + BytesOfVarintsAtMost(k, count, count) + k * sizeof(float);
  }

 private:
  // Magnitudes are counted by exponent and three bits more.
  static constexpr int kBinShift = 20, kBins = 1 << (31 - kBinShift);

  size_t Kept(size_t count) const {
    const auto wanted = static_cast<size_t>(std::ceil(ratio_ * static_cast<double>(count)));
    return std::clamp<size_t>(wanted, 1, count);
  }

  // The lower end of the highest bins that together hold at least k values; 1 or more, so that zeros are left out.
  static int32_t BinOfKth(std::span<const float> values, size_t k) {
    const auto count = static_cast<int64_t>(values.size()), chunks = ChunksOf(values);
    std::vector<uint32_t> sizes(kBins, 0);
    ParallelFor(chunks, 1, [&](int64_t begin, int64_t end) {
      // Two of them: to increase a number again takes until the first time is done.
      uint32_t even[kBins] = {}, odd[kBins] = {};
      const int64_t first = begin * kChunk, last = std::min(count, end * kChunk);
      int64_t i = first;
      for (; i + 2 <= last; i += 2) {
        ++even[MagnitudeBits(values[i]) >> kBinShift];
        ++odd[MagnitudeBits(values[i + 1]) >> kBinShift];
      }
      if (i < last) ++even[MagnitudeBits(values[i]) >> kBinShift];
#pragma omp critical(crema_codec_bins)
      for (int bin = 0; bin < kBins; ++bin) sizes[bin] += even[bin] + odd[bin];
    });
    size_t above = 0;
    int bin = kBins;
    while (bin > 0 && above < k) above += sizes[--bin];
    return std::max(1, bin << kBinShift);
  }

  // The indices, in order, of the k largest magnitudes above 0.
  static std::vector<uint32_t> Largest(std::span<const float> values, size_t k) {
    std::vector<uint32_t> found = FindAtLeast(values, BinOfKth(values, k));
    if (found.size() <= k) return found;
    std::vector<int32_t> magnitudes(found.size());
    std::ranges::transform(found, magnitudes.begin(), [&](uint32_t index) { return MagnitudeBits(values[index]); });
    std::nth_element(magnitudes.begin(), magnitudes.begin() + (k - 1), magnitudes.end(), std::greater<>());
    const int32_t kth = magnitudes[k - 1];
    size_t equals = k - std::count_if(magnitudes.begin(), magnitudes.begin() + k, [&](int32_t m) { return m > kth; });
    size_t kept = 0;
    for (const uint32_t index : found) {
      const int32_t magnitude = MagnitudeBits(values[index]);
      if (magnitude < kth || (magnitude == kth && equals == 0)) continue;
      if (magnitude == kth) --equals;
      found[kept++] = index;
    }
    found.resize(kept);
    return found;
  }

  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    CheckCount(values.size());
    const std::vector<uint32_t> indices = Largest(values, Kept(values.size()));
    const size_t before = out.size();
    std::byte* const code = Extend(out, EncodedBytesAtMost(values.size()));
    std::byte* to = PutVarint(indices.size(), code);
    uint32_t expected = 0;
    for (const uint32_t index : indices) {
      to = PutVarint(index - expected, to);
      expected = index + 1;
    }
    for (const uint32_t index : indices) {
      Store(to, values[index]);
      to += sizeof(float);
    }
    out.resize(before + static_cast<size_t>(to - code));
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    const std::byte *from = code.data(), *const end = from + code.size();
    uint64_t k;
    from = GetVarint(from, end, &k);
    if (!from) Refuse("it does not begin with a number");
    if (k > values.size()) Refuse(std::to_string(k) + " values of " + std::to_string(values.size()));
    if (static_cast<size_t>(end - from) < k * (1 + sizeof(float))) Refuse("it is too short");
    const std::byte* const first_sent = end - k * sizeof(float);
    const std::byte* sent = first_sent;
    Zero(values);
    uint64_t index = 0;
    for (; sent < end; sent += sizeof(float), ++index) {
      uint64_t gap;
      from = GetVarint(from, first_sent, &gap);
      if (!from) Refuse("an index is malformed");
      if (gap >= values.size() || index + gap >= values.size()) Refuse("an index is beyond the last value");
      index += gap;
      const auto value = Load<float>(sent);
      if (MagnitudeBits(value) >= kInfinityBits) Refuse("a value is not finite");
      values[index] = value;
    }
    if (from != first_sent) Refuse("there are bytes left over");
  }

  const double ratio_;
};

// 16 values in each word, of two bits each.
constexpr int64_t kPairs = 16;

// words: room for n / kPairs, n a multiple of it.
CREMA_MULTIVERSION void PackSigns(const float* values, int64_t n, int32_t least, uint32_t* words) {
  for (int64_t i = 0; i < n; i += kPairs) {
    uint8_t codes[kPairs];
    for (int64_t j = 0; j < kPairs; ++j) {
      const auto sent = static_cast<uint8_t>(MagnitudeBits(values[i + j]) >= least);
      codes[j] = static_cast<uint8_t>(sent << (values[i + j] < 0));
    }
    uint32_t word = 0;
    for (int64_t j = 0; j < kPairs; j += 4) {
      uint32_t four;
      memcpy(&four, codes + j, sizeof four);
      // Moves the two low bits of each byte next to each other in the highest one.
      word |= ((four * 0x01041040u) >> 24) << (2 * j);
    }
    words[i / kPairs] = word;
  }
}

// Returns false where a pair of bits is 3.
CREMA_MULTIVERSION bool UnpackSigns(const uint32_t* words, int64_t n, float threshold, float* values) {
  static constexpr uint32_t kBits[kPairs] = {1u << 0,  1u << 2,  1u << 4,  1u << 6,  1u << 8,  1u << 10,
                                             1u << 12, 1u << 14, 1u << 16, 1u << 18, 1u << 20, 1u << 22,
                                             1u << 24, 1u << 26, 1u << 28, 1u << 30};
  const auto bits = std::bit_cast<uint32_t>(threshold);
  uint32_t both = 0;
  for (int64_t i = 0; i < n; i += kPairs) {
    const uint32_t word = words[i / kPairs];
    both |= word & (word >> 1) & 0x55555555u;
    for (int64_t j = 0; j < kPairs; ++j) {
      const uint32_t positive = (word & kBits[j]) != 0 ? bits : 0u;
      const uint32_t negative = ((word >> 1) & kBits[j]) != 0 ? bits | 0x80000000u : 0u;
      values[i + j] = std::bit_cast<float>(positive | negative);
    }
  }
  return both == 0;
}

// How many values have MagnitudeBits of at least `least`.
CREMA_MULTIVERSION int64_t CountAtLeast(const float* values, int64_t n, int32_t least) {
  constexpr int64_t kGroup = 1024;
  int64_t count = 0, i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    int32_t here = 0;
    for (int64_t j = 0; j < kGroup; ++j) here += MagnitudeBits(values[i + j]) >= least;
    count += here;
  }
  for (; i < n; ++i) count += MagnitudeBits(values[i]) >= least;
  return count;
}

class ThresholdCodec final : public Codec {
 public:
  explicit ThresholdCodec(float threshold) : Codec(CodecKind::kThreshold), threshold_(threshold) {}

  size_t EncodedBytesAtMost(size_t count) const override { return count == 0 ? 0 : kHeader + BytesOfBits(count, 2); }
  float Scale(std::span<const float>, std::span<const float>) const override { return threshold_; }

 private:
  enum Form : uint8_t { kSparse = 0, kPacked = 1 };
  static constexpr size_t kHeader = sizeof(float) + 1;
  static constexpr int64_t kStrip = 1024;

  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    CheckCount(values.size());
    const auto least = std::bit_cast<int32_t>(threshold_);
    if (SmallEnough(values, least)) {
      const std::vector<uint32_t> indices = FindAtLeast(values, least);
      size_t bytes = BytesOfVarint(indices.size());
      uint32_t expected = 0;
      for (const uint32_t index : indices) {
        bytes += BytesOfVarint(uint64_t{index - expected} * 2);
        expected = index + 1;
      }
      if (bytes < BytesOfBits(values.size(), 2)) {
        EncodeSparse(values, indices, Begin(kSparse, bytes, out));
        return;
      }
    }
    EncodePacked(values, least, Begin(kPacked, BytesOfBits(values.size(), 2), out));
  }

  // Whether so few are sent that writing down which may take fewer bytes than two bits for each value.
  static bool SmallEnough(std::span<const float> values, int32_t least) {
    std::atomic<int64_t> sent = 0;
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain,
                [&](int64_t begin, int64_t end) { sent += CountAtLeast(values.data() + begin, end - begin, least); });
    return static_cast<size_t>(sent) < BytesOfBits(values.size(), 2);
  }

  std::byte* Begin(Form form, size_t bytes, Bytes& out) const {
    std::byte* const code = Extend(out, kHeader + bytes);
    Store(code, threshold_);
    Store(code + sizeof(float), form);
    return code + kHeader;
  }

  static void EncodeSparse(std::span<const float> values, std::span<const uint32_t> indices, std::byte* to) {
    to = PutVarint(indices.size(), to);
    uint32_t expected = 0;
    for (const uint32_t index : indices) {
      to = PutVarint(uint64_t{index - expected} * 2 + (values[index] < 0), to);
      expected = index + 1;
    }
  }

  static void EncodePacked(std::span<const float> values, int32_t least, std::byte* to) {
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
      uint32_t words[kStrip / kPairs];
      for (int64_t i = begin; i < end; i += kStrip) {
        const int64_t n = std::min(kStrip, end - i);
        if (n == kStrip) {
          PackSigns(values.data() + i, kStrip, least, words);
        } else {
          float rest[kStrip] = {};
          std::copy_n(values.data() + i, n, rest);
          PackSigns(rest, kStrip, least, words);
        }
        memcpy(to + i / 4, words, BytesOfBits(n, 2));
      }
    });
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    if (code.size() < kHeader) Refuse("it is too short");
    const auto threshold = Load<float>(code.data());
    if (!(threshold > 0 && std::isfinite(threshold))) Refuse("its threshold is not a finite number above 0");
    const auto form = static_cast<uint8_t>(code[sizeof(float)]);
    code = code.subspan(kHeader);
    if (form == kSparse) {
      DecodeSparse(code, threshold, values);
    } else if (form == kPacked) {
      DecodePacked(code, threshold, values);
    } else {
      Refuse("it has an unknown form");
    }
  }

  void DecodeSparse(std::span<const std::byte> code, float threshold, std::span<float> values) const {
    const std::byte *from = code.data(), *const end = from + code.size();
    uint64_t k;
    from = GetVarint(from, end, &k);
    if (!from || k > values.size()) Refuse("it does not say how many values it has");
    Zero(values);
    uint64_t index = 0;
    for (; k > 0; --k, ++index) {
      uint64_t gap_and_sign;
      from = GetVarint(from, end, &gap_and_sign);
      if (!from) Refuse("an index is malformed");
      const uint64_t gap = gap_and_sign >> 1;
      if (gap >= values.size() || index + gap >= values.size()) Refuse("an index is beyond the last value");
      index += gap;
      values[index] = (gap_and_sign & 1) != 0 ? -threshold : threshold;
    }
    if (from != end) Refuse("there are bytes left over");
  }

  void DecodePacked(std::span<const std::byte> code, float threshold, std::span<float> values) const {
    if (code.size() != BytesOfBits(values.size(), 2)) Refuse("it has the wrong size");
    std::atomic<bool> good = true;
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
      uint32_t words[kStrip / kPairs];
      for (int64_t i = begin; i < end; i += kStrip) {
        const int64_t n = std::min(kStrip, end - i);
        bool fit;
        if (n == kStrip) {
          memcpy(words, code.data() + i / 4, sizeof words);
          fit = UnpackSigns(words, kStrip, threshold, values.data() + i);
        } else {
          std::fill(std::begin(words), std::end(words), 0);
          memcpy(words, code.data() + i / 4, BytesOfBits(n, 2));
          float rest[kStrip];
          fit = UnpackSigns(words, kStrip, threshold, rest);
          fit &= std::all_of(rest + n, rest + kStrip, [](float padding) { return padding == 0; });
          std::copy_n(rest, n, values.data() + i);
        }
        if (!fit) good = false;
      }
    });
    if (!good) Refuse("a pair of bits is 3, or its last bits are not 0");
  }

  const float threshold_;
};

}  // namespace

std::unique_ptr<const Codec> MakeTopKCodec(double ratio) { return std::make_unique<TopKCodec>(ratio); }
std::unique_ptr<const Codec> MakeThresholdCodec(float threshold) { return std::make_unique<ThresholdCodec>(threshold); }

}  // namespace crema
