// A sign for each value: ONEBIT.
#include <atomic>
#include <cmath>

#include "distributed/codecs/codec_impl.h"

namespace crema {

namespace {

// Bits come in words of so many values.
constexpr int64_t kWord = 64, kMostWords = 65536 / kWord;

struct Means {
  float negative = 0, positive = 0;
  bool has_zeros = false, only_zeros = true;
};

// Adds the sums of negative and of positive values. n: a multiple of kWord.
CREMA_MULTIVERSION void SumColumn(const float* values, int64_t n, double* negative, double* positive) {
  constexpr int64_t kLanes = 16, kPiece = 8 * kWord;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = std::min(n, begin + kPiece);
    float below[kLanes] = {}, above[kLanes] = {};
    for (int64_t i = begin; i < end; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) below[j] += values[i + j] < 0 ? values[i + j] : 0.0f;
      for (int64_t j = 0; j < kLanes; ++j) above[j] += values[i + j] > 0 ? values[i + j] : 0.0f;
    }
    double below_sum = 0, above_sum = 0;
    for (int64_t j = 0; j < kLanes; ++j) {
      below_sum += below[j];
      above_sum += above[j];
    }
    if (!std::isfinite(below_sum) || !std::isfinite(above_sum)) {
      below_sum = above_sum = 0;
      for (int64_t i = begin; i < end; ++i) (values[i] < 0 ? below_sum : above_sum) += values[i];
    }
    *negative += below_sum;
    *positive += above_sum;
  }
}

// How many are negative and positive. n: a multiple of kWord, at most 65536.
CREMA_MULTIVERSION void CountColumn(const float* values, int64_t n, int64_t* negative, int64_t* positive) {
  constexpr int64_t kLanes = 16;
  int32_t below[kLanes] = {}, above[kLanes] = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) below[j] += values[i + j] < 0 ? 1 : 0;
    for (int64_t j = 0; j < kLanes; ++j) above[j] += values[i + j] > 0 ? 1 : 0;
  }
  for (int64_t j = 0; j < kLanes; ++j) {
    *negative += below[j];
    *positive += above[j];
  }
}

// The lowest bit of each of 8 bytes.
CREMA_INLINE uint64_t BitsOfBytes(const uint8_t* bytes) {
  uint64_t eight;
  memcpy(&eight, bytes, sizeof eight);
  return (eight * 0x0102040810204080u) >> 56;
}

CREMA_MULTIVERSION void PackBits(const float* values, int64_t n, uint64_t* negative, uint64_t* zero) {
  for (int64_t i = 0; i < n; i += kWord) {
    uint8_t below[kWord], equal[kWord];
    for (int64_t j = 0; j < kWord; ++j) below[j] = values[i + j] < 0;
    for (int64_t j = 0; j < kWord; ++j) equal[j] = values[i + j] == 0;
    uint64_t below_word = 0, equal_word = 0;
    for (int64_t j = 0; j < kWord; j += 8) {
      below_word |= BitsOfBytes(below + j) << j;
      equal_word |= BitsOfBytes(equal + j) << j;
    }
    negative[i / kWord] = below_word;
    zero[i / kWord] = equal_word;
  }
}

CREMA_MULTIVERSION void UnpackBits(const uint64_t* negative, const uint64_t* zero, int64_t n, float negative_mean,
                                   float positive_mean, float* values) {
  constexpr int64_t kHalf = 32;
  static constexpr uint32_t kBits[kHalf] = {
      1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
      1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
      1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};
  const auto below = std::bit_cast<uint32_t>(negative_mean), above = std::bit_cast<uint32_t>(positive_mean);
  for (int64_t i = 0; i < n; i += kHalf) {
    const auto signs = static_cast<uint32_t>(negative[i / kWord] >> (i % kWord));
    const auto zeros = static_cast<uint32_t>(zero[i / kWord] >> (i % kWord));
    for (int64_t j = 0; j < kHalf; ++j) {
      const uint32_t mean = (signs & kBits[j]) != 0 ? below : above;
      values[i + j] = std::bit_cast<float>((zeros & kBits[j]) != 0 ? 0u : mean);
    }
  }
}

class OneBitCodec final : public Codec {
 public:
  explicit OneBitCodec(size_t column) : Codec(CodecKind::kOneBit), column_(static_cast<int64_t>(column)) {}

  size_t EncodedBytesAtMost(size_t count) const override {
    const size_t full = count / column_, rest = count % column_;
    return full * (1 + BytesOfColumn(kSomeZeros, column_)) + (rest > 0 ? 1 + BytesOfColumn(kSomeZeros, rest) : 0);
  }

  float Scale(std::span<const float> values, std::span<const float> decoded) const override {
    return std::bit_cast<float>(std::max(LargestMagnitudeBits(values), LargestMagnitudeBits(decoded)));
  }

 private:
  enum Form : uint8_t { kOnlyZeros = 0, kNoZeros = 1, kSomeZeros = 2 };
  static constexpr size_t kMeans = 2 * sizeof(float);

  static size_t BytesOfColumn(uint8_t form, int64_t n) {
    return form == kOnlyZeros ? 0 : kMeans + form * BytesOfBits(n, 1);
  }
  int64_t ColumnsOf(size_t count) const { return (static_cast<int64_t>(count) + column_ - 1) / column_; }
  int64_t RowsOf(size_t count, int64_t column) const {
    return std::min(column_, static_cast<int64_t>(count) - column * column_);
  }
  int64_t Grain() const { return std::max<int64_t>(1, kCodecGrain / column_); }

  // The bytes of the codes of columns [0, column), after all forms.
  size_t BytesBefore(const std::byte* forms, int64_t column, size_t count) const {
    size_t bytes = 0;
    for (int64_t c = 0; c < column; ++c) bytes += BytesOfColumn(static_cast<uint8_t>(forms[c]), RowsOf(count, c));
    return bytes;
  }

  // Of n values, padded with zeros to words.
  static Means MeansOf(const float* values, int64_t n) {
    double negative_sum = 0, positive_sum = 0;
    int64_t negatives = 0, positives = 0;
    const int64_t whole = n / kWord * kWord;
    SumColumn(values, whole, &negative_sum, &positive_sum);
    CountColumn(values, whole, &negatives, &positives);
    if (whole < n) {
      float rest[kWord] = {};
      std::copy(values + whole, values + n, rest);
      SumColumn(rest, kWord, &negative_sum, &positive_sum);
      CountColumn(rest, kWord, &negatives, &positives);
    }
    Means means;
    if (negatives > 0) means.negative = static_cast<float>(negative_sum / static_cast<double>(negatives));
    if (positives > 0) means.positive = static_cast<float>(positive_sum / static_cast<double>(positives));
    means.only_zeros = negatives + positives == 0;
    means.has_zeros = negatives + positives < n;
    return means;
  }

  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    const int64_t columns = ColumnsOf(values.size());
    std::vector<Means> means(columns);
    Bytes forms(columns, std::byte{0});
    ParallelFor(columns, Grain(), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        means[c] = MeansOf(values.data() + c * column_, RowsOf(values.size(), c));
        const Form form = means[c].only_zeros ? kOnlyZeros : means[c].has_zeros ? kSomeZeros : kNoZeros;
        forms[c] = static_cast<std::byte>(form);
      }
    });
    std::byte* const code = Extend(out, columns + BytesBefore(forms.data(), columns, values.size()));
    std::ranges::copy(forms, code);
    ParallelFor(columns, Grain(), [&](int64_t begin, int64_t end) {
      std::byte* to = code + columns + BytesBefore(forms.data(), begin, values.size());
      for (int64_t c = begin; c < end; ++c) {
        const int64_t rows = RowsOf(values.size(), c);
        if (!means[c].only_zeros) EncodeColumn(values.data() + c * column_, rows, means[c], to);
        to += BytesOfColumn(static_cast<uint8_t>(forms[c]), rows);
      }
    });
  }

  static void EncodeColumn(const float* values, int64_t n, const Means& means, std::byte* to) {
    uint64_t negative[kMostWords], zero[kMostWords];
    const int64_t whole = n / kWord * kWord;
    PackBits(values, whole, negative, zero);
    if (whole < n) {
      float rest[kWord];
      std::fill(std::copy(values + whole, values + n, rest), rest + kWord, 1.0f);
      PackBits(rest, kWord, negative + whole / kWord, zero + whole / kWord);
    }
    const size_t bytes = BytesOfBits(n, 1);
    Store(to, means.negative);
    Store(to + sizeof(float), means.positive);
    to += kMeans;
    if (means.has_zeros) {
      memcpy(to, zero, bytes);
      to += bytes;
    }
    memcpy(to, negative, bytes);
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    const int64_t columns = ColumnsOf(values.size());
    if (code.size() < static_cast<size_t>(columns)) Refuse("it is too short");
    const std::byte* const forms = code.data();
    if (std::any_of(forms, forms + columns, [](std::byte form) { return form > std::byte{kSomeZeros}; })) {
      Refuse("a column has an unknown form");
    }
    const size_t bytes = columns + BytesBefore(forms, columns, values.size());
    if (code.size() != bytes) {
      Refuse(std::to_string(code.size()) + " bytes instead of " + std::to_string(bytes));
    }
    std::atomic<bool> good = true;
    ParallelFor(columns, Grain(), [&](int64_t begin, int64_t end) {
      const std::byte* from = forms + columns + BytesBefore(forms, begin, values.size());
      for (int64_t c = begin; c < end; ++c) {
        const int64_t rows = RowsOf(values.size(), c);
        const auto form = static_cast<uint8_t>(forms[c]);
        if (!DecodeColumn(from, form, rows, values.data() + c * column_)) good = false;
        from += BytesOfColumn(form, rows);
      }
    });
    if (!good) Refuse("a mean has the wrong sign or is not finite, or a bit is set that cannot be");
  }

  static bool DecodeColumn(const std::byte* from, uint8_t form, int64_t n, float* values) {
    if (form == kOnlyZeros) {
      std::fill(values, values + n, 0.0f);
      return true;
    }
    const auto negative_mean = Load<float>(from), positive_mean = Load<float>(from + sizeof(float));
    constexpr float kMost = std::numeric_limits<float>::max();
    if (!(negative_mean <= 0 && negative_mean >= -kMost && positive_mean >= 0 && positive_mean <= kMost)) return false;
    const size_t bytes = BytesOfBits(n, 1);
    const int64_t words = (n + kWord - 1) / kWord, whole = n / kWord;
    uint64_t negative[kMostWords], zero[kMostWords];
    negative[words - 1] = 0;
    std::fill(zero, zero + words, 0);
    from += kMeans;
    if (form == kSomeZeros) {
      memcpy(zero, from, bytes);
      from += bytes;
    }
    memcpy(negative, from, bytes);
    uint64_t wrong = 0;
    for (int64_t i = 0; i < words; ++i) wrong |= negative[i] & zero[i];
    if (whole < words) wrong |= (negative[whole] | zero[whole]) >> (n % kWord);
    UnpackBits(negative, zero, whole * kWord, negative_mean, positive_mean, values);
    if (whole < words) {
      float rest[kWord];
      UnpackBits(negative + whole, zero + whole, kWord, negative_mean, positive_mean, rest);
      std::copy_n(rest, n % kWord, values + whole * kWord);
    }
    return wrong == 0;
  }

  const int64_t column_;
};

}  // namespace

std::unique_ptr<const Codec> MakeOneBitCodec(size_t column) { return std::make_unique<OneBitCodec>(column); }

}  // namespace crema
