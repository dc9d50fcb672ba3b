#include <algorithm>
#include <functional>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/detection/box_tile.h"
#include "ops/detection/region_targets_formulas.h"

namespace crema {

namespace {

using region_targets::AnchorScratch;
using region_targets::Kind;
using region_targets::Match;

// Some anchors of an image that lie behind each other.
struct Tile {
  int64_t first, count;
  BoxTile boxes;
  bool inside[BoxTile::kMost];  // the image
};

void LoadTile(const AnchorTargetProblem& p, const ScaledImage& image, int64_t first, Tile* tile) {
  tile->first = first;
  tile->count = std::min(BoxTile::kMost, p.anchors.count() - first);
  for (int64_t i = 0; i < tile->count; ++i) {
    const BoundingBox box = anchors::BoxOf(p.anchors, first + i);
    tile->boxes.xmin[i] = box.xmin;
    tile->boxes.ymin[i] = box.ymin;
    tile->boxes.xmax[i] = box.xmax;
    tile->boxes.ymax[i] = box.ymax;
    tile->inside[i] = region_targets::IsInside(p, image, box);
  }
}

// One function for all, so that the same overlaps come out each time.
CREMA_MULTIVERSION void Overlaps(const Tile& tile, const float* object, float* overlap) {
  OverlapAll(tile.count, tile.boxes, anchors::FromPixels(object), overlap);
}

// Calls body(row, overlaps of the tile's anchors with it) for each object of an image.
template <typename Body>
void ForEachObject(const AnchorTargetProblem& p, const Tile& tile, const float* objects, const Body& body) {
  float overlap[BoxTile::kMost];
  for (int64_t row = 0; row < p.objects.rows; ++row) {
    const float* const object = objects + row * kRegionObjectNumbers;
    if (!region_targets::IsObject(p.objects, object)) continue;
    Overlaps(tile, object, overlap);
    body(row, overlap);
  }
}

// Labels of a tile's anchors and rows of their objects, both of the image.
void LabelTile(const AnchorTargetProblem& p, const Tile& tile, const float* objects, const float* best, int32_t* match,
               float* labels) {
  Match matches[BoxTile::kMost];
  bool is_best[BoxTile::kMost] = {};
  ForEachObject(p, tile, objects, [&](int64_t row, const float* overlap) {
    for (int64_t i = 0; i < tile.count; ++i) {
      is_best[i] |= overlap[i] > 0 && overlap[i] == best[row];
      if (overlap[i] > matches[i].overlap) matches[i] = {overlap[i], static_cast<int32_t>(row)};
    }
  });
  for (int64_t i = 0; i < tile.count; ++i) {
    match[tile.first + i] = tile.inside[i] ? matches[i].object : -1;
    labels[tile.first + i] = tile.inside[i] ? region_targets::LabelOf(p, matches[i], is_best[i]) : -1.0f;
  }
}

// Keeps the labels of `keep` of these anchors. Returns how many are kept.
int64_t KeepSome(uint64_t* ranks, const uint64_t* end, int64_t keep, float* labels) {
  const int64_t count = end - ranks;
  if (count <= keep) return count;
  std::nth_element(ranks, ranks + keep, ranks + count, std::greater<>());
  for (int64_t i = keep; i < count; ++i) labels[region_targets::IndexOf(ranks[i])] = -1;
  return keep;
}

// Returns how many of the image count.
int64_t DrawAnchors(const AnchorTargetProblem& p, const RandomStream& random, int64_t image, uint64_t* ranks,
                    float* labels) {
  const int64_t anchors = p.anchors.count();
  uint64_t* end = ranks;
  for (int64_t i = 0; i < anchors; ++i) {
    if (labels[i] < 0) continue;
    const Kind kind = labels[i] == 1 ? Kind::kObject : Kind::kBackground;
    *end++ = region_targets::RankOf(kind, random, static_cast<uint64_t>(image * anchors + i), i);
  }
  uint64_t* const middle =
      std::partition(ranks, end, [](uint64_t rank) { return region_targets::KindOf(rank) == Kind::kObject; });
  const int64_t objects = KeepSome(ranks, middle, p.foreground, labels);
  return objects + KeepSome(middle, end, p.batch - objects, labels);
}

void FillImage(const AnchorTargetProblem& p, const RandomStream& random, int64_t image, const float* info,
               const float* all_objects, const AnchorTargets& targets, const AnchorScratch& scratch) {
  const int64_t anchors = p.anchors.count();
  const ScaledImage extent = anchors::InfoOf(info, image);
  const float* const objects = all_objects + image * p.objects.rows * kRegionObjectNumbers;
  float* const best = scratch.best + image * p.objects.rows;
  float* const labels = targets.labels + image * anchors;
  int32_t* const match = scratch.match + image * anchors;

  Tile tile;
  std::fill(best, best + p.objects.rows, 0.0f);
  for (int64_t first = 0; first < anchors; first += BoxTile::kMost) {
    LoadTile(p, extent, first, &tile);
    ForEachObject(p, tile, objects, [&](int64_t row, const float* overlap) {
      for (int64_t i = 0; i < tile.count; ++i) {
        if (tile.inside[i]) best[row] = std::max(best[row], overlap[i]);
      }
    });
  }
  for (int64_t first = 0; first < anchors; first += BoxTile::kMost) {
    LoadTile(p, extent, first, &tile);
    LabelTile(p, tile, objects, best, match, labels);
  }
  const int64_t counted = DrawAnchors(p, random, image, scratch.ranks + image * anchors, labels);
  const float share = region_targets::ShareOf(counted);
  for (int64_t i = 0; i < anchors; ++i) {
    region_targets::WriteAnchor(p, objects, image, i, match[i], share, targets);
  }
}

}  // namespace

size_t AnchorTargetWorkspace(const AnchorTargetProblem& problem) { return region_targets::AnchorScratchBytes(problem); }

void MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random, const float* info,
                       const float* objects, const AnchorTargets& targets, std::byte* workspace) {
  const AnchorScratch scratch = region_targets::AnchorScratchIn(problem, workspace);
  ParallelFor(problem.objects.images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      FillImage(problem, random, image, info, objects, targets, scratch);
    }
  });
}

}  // namespace crema
