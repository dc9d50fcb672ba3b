// What YOLO's predictions are and learn, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_YOLO_FORMULAS_H_
#define CREMA_OPS_DETECTION_YOLO_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "ops/detection/box_formulas.h"
#include "ops/detection/box_overlap_gradient.h"
#include "ops/detection/yolo.h"

namespace crema::yolo {

using Box = overlaps::Centred<float>;

// One of the predictions of a grid, counted by image, anchor of the cell, and cell.
struct Place {
  int64_t image, row, column;
  int32_t anchor;    // of those of the cell
  int64_t at, step;  // where its first number lies, and how far its numbers lie apart
};

CREMA_FORMULA Place PlaceOf(const YoloGrid& g, int64_t prediction) {
  const int64_t cells = g.height * g.width, cell = prediction % cells, block = prediction / cells;
  return {block / g.anchors,
          cell / g.width,
          cell % g.width,
          static_cast<int32_t>(block % g.anchors),
          block * (YoloGrid::kOfBox + g.classes) * cells + cell,
          cells};
}

// Where in its cell a centre lies, by the sigmoid of its number; in sides of the cell.
CREMA_FORMULA float InCell(const YoloGrid& g, float said) { return g.centre_range * said - (g.centre_range - 1) / 2; }

// A side in those of the anchor, by its number.
CREMA_FORMULA float OfAnchor(const YoloGrid& g, float number) {
  if (!g.squared_sides) return formula::Exp(number);
  const float doubled = 2 * formula::Sigmoid()(number);
  return doubled * doubled;
}

CREMA_FORMULA Box BoxOf(const YoloGrid& g, const Place& place, const float* predictions) {
  const float* const numbers = predictions + place.at;
  const int32_t anchor = g.own[place.anchor];
  const float x = InCell(g, formula::Sigmoid()(numbers[0])), y = InCell(g, formula::Sigmoid()(numbers[place.step]));
  return {(static_cast<float>(place.column) + x) / static_cast<float>(g.width),
          (static_cast<float>(place.row) + y) / static_cast<float>(g.height),
          OfAnchor(g, numbers[2 * place.step]) * g.anchor_width[anchor],
          OfAnchor(g, numbers[3 * place.step]) * g.anchor_height[anchor]};
}

CREMA_FORMULA BoundingBox CornersOf(const Box& box) {
  return {box.x - box.width / 2, box.y - box.height / 2, box.x + box.width / 2, box.y + box.height / 2};
}

CREMA_FORMULA BoundingBox CornersOfRow(const float* row) { return {row[3], row[4], row[5], row[6]}; }

CREMA_FORMULA Box BoxOfRow(const float* row) {
  return {(row[3] + row[5]) / 2, (row[4] + row[6]) / 2, row[5] - row[3], row[6] - row[4]};
}
// Boxes without an area are none; rows that cannot be used are told of elsewhere.
CREMA_FORMULA bool IsObjectOf(const YoloGrid& g, const float* row, int64_t image) {
  return row[0] == static_cast<float>(image) && row[5] > row[3] && row[6] > row[4] && row[1] != 0.0f &&
         object_rows::IsNumberOf(row[1], g.classes + 1);
}

// Where among `count` cells a centre lies.
CREMA_FORMULA int64_t CellOf(float centre, int64_t count) {
  const float cell = ::floorf(centre * static_cast<float>(count));
  return cell < 0.0f ? 0 : cell < static_cast<float>(count) ? static_cast<int64_t>(cell) : count - 1;
}

// Of an anchor, or of the sides that the place's cell predicts for it, and an object with one centre.
CREMA_FORMULA float OverlapOfSides(const YoloLoss& loss, const Place& place, const float* predictions, int32_t anchor,
                                   const Box& object) {
  const YoloGrid& g = loss.grid;
  float width = g.anchor_width[anchor], height = g.anchor_height[anchor];
  if (loss.matches_predicted) {
    const int64_t apart = (anchor - place.anchor) * (YoloGrid::kOfBox + g.classes);
    const float* const numbers = predictions + place.at + apart * place.step;
    width *= OfAnchor(g, numbers[2 * place.step]);
    height *= OfAnchor(g, numbers[3 * place.step]);
  }
  return boxes::Overlap({0, 0, width, height}, {0, 0, object.width, object.height});
}

CREMA_FORMULA bool Learns(const YoloLoss& loss, const Place& place, const float* predictions, const Box& object) {
  const YoloGrid& g = loss.grid;
  if (CellOf(object.x, g.width) != place.column || CellOf(object.y, g.height) != place.row) return false;
  const int32_t own = g.own[place.anchor];
  const float overlap = OverlapOfSides(loss, place, predictions, own, object);
  if (loss.match_above < 1 && overlap > loss.match_above) return true;
  for (int32_t anchor = 0; anchor < g.all_anchors; ++anchor) {
    if (anchor == own) continue;
    const float other = OverlapOfSides(loss, place, predictions, anchor, object);
    if (other > overlap || (other == overlap && anchor < own)) return false;
  }
  return true;
}

// How likely the classes of a prediction are.
struct Classes {
  const float* numbers;  // of the first class
  int64_t step;
  bool softmax;     // over them, instead of a sigmoid of each
  int64_t best;     // the likeliest
  float most, sum;  // its number, and softmax: of exp(number - most)
};

CREMA_FORMULA Classes ClassesOf(const YoloGrid& g, const Place& place, const float* predictions, bool softmax) {
  Classes classes = {predictions + place.at + YoloGrid::kOfBox * place.step, place.step, softmax, 0, 0, 0};
  classes.most = classes.numbers[0];
  for (int64_t c = 1; c < g.classes; ++c) {
    const float said = classes.numbers[c * place.step];
    if (!(said > classes.most)) continue;
    classes.most = said;
    classes.best = c;
  }
  for (int64_t c = 0; softmax && c < g.classes; ++c) {
    classes.sum += formula::Exp(classes.numbers[c * place.step] - classes.most);
  }
  return classes;
}

CREMA_FORMULA float Likely(const Classes& classes, int64_t c) {
  const float said = classes.numbers[c * classes.step];
  return classes.softmax ? formula::Exp(said - classes.most) / classes.sum : formula::Sigmoid()(said);
}

struct BoxDelta {
  float numbers[4];  // the gradient of what the box's numbers are wrong by
  float loss;        // besides their squares
};

CREMA_FORMULA float Bounded(float x, float most) { return x > most ? most : x < -most ? -most : x; }

CREMA_FORMULA BoxDelta DeltaOfBox(const YoloLoss& loss, const Place& place, const float* predictions,
                                  const Box& object) {
  const YoloGrid& g = loss.grid;
  const float* const numbers = predictions + place.at;
  const float x = formula::Sigmoid()(numbers[0]), y = formula::Sigmoid()(numbers[place.step]);
  const auto columns = static_cast<float>(g.width), rows = static_cast<float>(g.height);
  if (loss.box_loss != YoloBoxLoss::kSquares) {
    const Box box = BoxOf(g, place, predictions);
    const overlaps::Dual overlap = overlaps::Overlap(loss.box_loss, box, object);
    const auto delta = [&](int which, float derivative) {
      return Bounded(-loss.overlap_scale * overlap.by[which] * derivative, loss.most_delta);
    };
    const auto slope = [&](int which, float side) {
      return g.squared_sides ? 2 * side * (1 - formula::Sigmoid()(numbers[which * place.step])) : side;
    };
    return {{delta(0, g.centre_range * x * (1 - x) / columns), delta(1, g.centre_range * y * (1 - y) / rows),
             delta(2, slope(2, box.width)), delta(3, slope(3, box.height))},
            loss.overlap_scale * (1 - overlap.value)};
  }
  const int32_t anchor = g.own[place.anchor];
  const float scale = loss.box_scale * (2 - object.width * object.height);
  return {{scale * (InCell(g, x) - (object.x * columns - static_cast<float>(place.column))),
           scale * (InCell(g, y) - (object.y * rows - static_cast<float>(place.row))),
           scale * (numbers[2 * place.step] - formula::Log(object.width / g.anchor_width[anchor])),
           scale * (numbers[3 * place.step] - formula::Log(object.height / g.anchor_height[anchor]))},
          0};
}

// What the objects of its image are to a prediction.
struct Matches {
  int count = 0;      // that it learns
  BoxDelta box = {};  // of these
  float surely = 1;   // how surely there is one, as the last of these wants it
  float best = 0;     // the largest overlap of its box with any
};

// Also writes what its classes are wrong by, where it learns an object, to `delta`.
CREMA_FORMULA Matches Match(const YoloLoss& loss, const Place& place, const float* predictions, const float* objects,
                            int64_t begin, int64_t end, float* delta) {
  const YoloGrid& g = loss.grid;
  const BoundingBox corners = CornersOf(BoxOf(g, place, predictions));
  Matches found;
  for (int64_t r = begin; r < end; ++r) {
    const float* const row = objects + r * ObjectRows::kNumbers;
    if (!IsObjectOf(g, row, place.image)) continue;
    const float overlap = boxes::Overlap(corners, CornersOfRow(row));
    found.best = overlap > found.best ? overlap : found.best;
    const Box object = BoxOfRow(row);
    if (!Learns(loss, place, predictions, object)) continue;
    const Classes classes = ClassesOf(g, place, predictions, loss.softmax);
    const auto want = [&](int64_t c, float wanted) {
      delta[(YoloGrid::kOfBox + c) * place.step] = loss.class_scale * (Likely(classes, c) - wanted);
    };
    if (found.count == 0 || !loss.joins_classes) {
      for (int64_t c = 0; c < g.classes; ++c) want(c, loss.smoothing / 2);
    }
    want(static_cast<int64_t>(row[1]) - 1, 1 - loss.smoothing / 2);
    ++found.count;
    if (loss.rescores) found.surely = overlap;
    const BoxDelta wanted = DeltaOfBox(loss, place, predictions, object);
    const float kept = loss.averages ? 1.0f : 0.0f;
    for (int i = 0; i < 4; ++i) found.box.numbers[i] = kept * found.box.numbers[i] + wanted.numbers[i];
    found.box.loss = kept * found.box.loss + wanted.loss;
  }
  return found;
}

// Writes the gradient of a prediction, which must hold zeros, and returns what it adds to the loss. All objects of its
// image are among the rows begin to end - 1.
CREMA_FORMULA float Learn(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects,
                          int64_t begin, int64_t end, int64_t prediction, float* gradient) {
  constexpr int64_t kSurely = 4;
  const YoloGrid& g = loss.grid;
  const Place place = PlaceOf(g, prediction);
  float* const delta = gradient + place.at;
  const Matches found = Match(loss, place, predictions, objects, begin, end, delta);
  const auto said = [&](int64_t number) { return formula::Sigmoid()(predictions[place.at + number * place.step]); };
  // Writes the gradient of what a number is wrong by, through `range` times a sigmoid, or none with 0; returns the
  // square.
  const auto learn = [&](int64_t number, float wrong, float range) {
    const float slope = range > 0 ? range * said(number) * (1 - said(number)) : 1.0f;
    delta[number * place.step] = wrong * slope / static_cast<float>(g.images);
    return wrong * wrong;
  };
  const float range = loss.through_sigmoid ? 1.0f : 0.0f;

  if (found.count == 0) {
    float sum = learn(kSurely, found.best > loss.ignore_above ? 0 : loss.nothing_scale * said(kSurely), range);
    if (pass >= loss.anchor_passes) return sum;
    for (int i = 0; i < 2; ++i) {
      sum += learn(i, loss.anchor_scale * (InCell(g, said(i)) - 0.5f), range * g.centre_range);
    }
    for (int i = 2; i < 4; ++i) sum += learn(i, loss.anchor_scale * predictions[place.at + i * place.step], 0);
    return sum;
  }
  const bool squares = loss.box_loss == YoloBoxLoss::kSquares;
  const float share = loss.averages ? 1 / static_cast<float>(found.count) : 1.0f;
  float sum = learn(kSurely, loss.object_scale * (said(kSurely) - found.surely), range) + found.box.loss * share;
  for (int i = 0; i < 4; ++i) {
    const float square = learn(i, found.box.numbers[i] * share, squares && i < 2 ? range * g.centre_range : 0);
    if (squares) sum += square;
  }
  for (int64_t i = YoloGrid::kOfBox; i < YoloGrid::kOfBox + g.classes; ++i) {
    sum += learn(i, delta[i * place.step], loss.classes_through_sigmoid ? 1.0f : 0.0f);
  }
  return sum;
}

CREMA_FORMULA void Decode(const YoloGrid& g, const float* predictions, int64_t prediction, const YoloBoxes& out) {
  const Place place = PlaceOf(g, prediction);
  const float* const numbers = predictions + place.at;
  const Classes classes = ClassesOf(g, place, predictions, out.softmax);
  const int64_t of_image = int64_t{g.anchors} * place.step;
  const int64_t at = place.image * out.all + out.first + prediction % of_image;
  const BoundingBox box = CornersOf(BoxOf(g, place, predictions));
  float* const corners = out.corners + at * 4;
  corners[0] = box.xmin;
  corners[1] = box.ymin;
  corners[2] = box.xmax;
  corners[3] = box.ymax;
  const float surely = formula::Sigmoid()(numbers[4 * place.step]);
  if (out.each_class) {
    float* const scores = out.scores + at * (1 + g.classes) + 1;
    for (int64_t c = 0; c < g.classes; ++c) {
      scores[c] = Likely(classes, c) * surely;
    }
    return;
  }
  out.scores[at] = Likely(classes, classes.best) * surely;
  out.labels[at] = static_cast<float>(classes.best + 1);
}

}  // namespace crema::yolo

#endif  // CREMA_OPS_DETECTION_YOLO_FORMULAS_H_
