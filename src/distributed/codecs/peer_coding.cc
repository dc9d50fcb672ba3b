#include "distributed/codecs/peer_coding.h"

#include <algorithm>

#include "base/check.h"
#include "distributed/averaging/round_formula.h"

namespace crema {

namespace {

constexpr size_t kCodedBlock = 2048;

StateLayout InBlocks(StateLayout layout) {
  std::vector<Bucket> blocks;
  for (const Bucket& bucket : layout.buckets) {
    size_t left = bucket.count;
    // What is left over is never too small to be compressed.
    const bool compressed = KindOf(bucket, CodecKind::kInt8) != CodecKind::kFloat32;
    while (compressed && left >= kCodedBlock + kLeastCompressedBytes / sizeof(float)) {
      blocks.push_back({kCodedBlock, false});
      left -= kCodedBlock;
    }
    blocks.push_back({left, bucket.exact});
  }
  layout.buckets = std::move(blocks);
  return layout;
}

}  // namespace

PeerCoding::PeerCoding(const DistributedParameter& settings, const StateLayout& layout) : layout_(InBlocks(layout)) {
  int64_t end = 0;
  for (const Bucket& block : layout_.buckets) {
    starts_.push_back(end);
    end += static_cast<int64_t>(block.count);
  }
  starts_.push_back(end);
  CREMA_CHECK(end == layout_.trained);
  const auto make = [&](Direction direction, Way& way) {
    const CodecOptions options = CodecOf(settings, direction);
    if (options.kind == CodecKind::kFloat32) return;
    way.encoder.emplace(options, layout_);
    way.decoder.emplace(options, layout_);
  };
  make(Direction::kUp, up_);
  make(Direction::kDown, down_);
}

int64_t PeerCoding::CutNear(int64_t place) const {
  if (place >= layout_.trained) return place;
  const auto above = std::upper_bound(starts_.begin(), starts_.end(), place);
  const int64_t below = *(above - 1);
  return place - below <= *above - place ? below : *above;
}

uint64_t PeerCoding::most_bytes() const {
  uint64_t most = layout_.bytes(true);
  for (const Way* way : {&up_, &down_}) most = std::max(most, way->decoder ? way->decoder->most_bytes() : 0);
  return most;
}

PeerCoding::Blocks PeerCoding::BlocksOf(Range piece) const {
  const auto block = [&](int64_t place) {
    const auto at = std::lower_bound(starts_.begin(), starts_.end(), std::min(place, layout_.trained));
    CREMA_CHECK(*at == std::min(place, layout_.trained));
    return static_cast<size_t>(at - starts_.begin());
  };
  const int64_t others = piece.last - std::max(piece.first, layout_.trained);
  return {block(piece.first), block(piece.last), static_cast<size_t>(std::max<int64_t>(0, others))};
}

Payload PeerCoding::Encode(Direction direction, Range piece, const float* values, std::span<const float> anchor,
                           bool exactly) {
  Way& way = direction == Direction::kUp ? up_ : down_;
  const std::span<const float> all(values, static_cast<size_t>(piece.last - piece.first));
  if (!way.encoder) {
    const std::span<const std::byte> bytes = std::as_bytes(all);
    return std::make_shared<Bytes>(bytes.begin(), bytes.end());
  }
  const Blocks blocks = BlocksOf(piece);
  try {
    return way.encoder->EncodePart(blocks.first, blocks.last, all,
                                   anchor.empty() ? anchor : anchor.subspan(static_cast<size_t>(starts_[blocks.first])),
                                   exactly);
  } catch (const NonFiniteValue&) {
    return nullptr;
  }
}

Payload PeerCoding::Decode(Direction direction, Range piece, const Payload& code, std::span<const float> anchor) const {
  if (!code) return nullptr;
  const Way& way = of(direction);
  if (!way.decoder) {
    return code->size() == static_cast<uint64_t>(piece.last - piece.first) * sizeof(float) ? code : nullptr;
  }
  const Blocks blocks = BlocksOf(piece);
  try {
    return way.decoder->DecodePart(
        blocks.first, blocks.last, blocks.others, code,
        anchor.empty() ? anchor : anchor.subspan(static_cast<size_t>(starts_[blocks.first])));
  } catch (const MalformedCode&) {
    return nullptr;
  }
}

void PeerCoding::Settle(bool committed) {
  for (Way* way : {&up_, &down_}) {
    if (way->encoder) way->encoder->Settle(committed);
  }
}

void PeerCoding::Forget() {
  for (Way* way : {&up_, &down_}) {
    if (way->encoder) way->encoder->Forget();
  }
}

}  // namespace crema
