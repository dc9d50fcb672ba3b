#include "layers/yolo_grid.h"

#include <cmath>
#include <cstdlib>
#include <numeric>

#include "layers/field_range.h"

namespace crema {

namespace {

void CheckAnchors(const LayerSetup& setup, const YoloFields& fields) {
  const std::string field = fields.block + ".biases";
  const size_t sides = fields.biases.size();
  if (sides == 0) {
    setup.Fail(fields.block, "biases must be given: width and height of each anchor, as the net was made for");
  }
  if (sides % 2 != 0 || sides > 2 * YoloGrid::kMostAnchors) {
    setup.Fail(field, "biases are " + std::to_string(sides) + " numbers; give width and height of each anchor, of " +
                          std::to_string(YoloGrid::kMostAnchors) + " at most");
  }
  for (const float side : fields.biases) {
    ReadInRange(setup, field, side, kPositive, "it is a side of an anchor");
  }
  for (const uint32_t anchor : fields.own) {
    if (anchor < sides / 2) continue;
    setup.Fail(fields.block + ".mask", "mask names anchor " + std::to_string(anchor) +
                                           ", but biases have anchors 0 to " + std::to_string(sides / 2 - 1));
  }
  if (fields.own.empty() || fields.own.size() > YoloGrid::kMostAnchors) {
    setup.Fail(fields.block, "a cell has " + std::to_string(fields.own.size()) + " anchors; it must have 1 to " +
                                 std::to_string(YoloGrid::kMostAnchors));
  }
}

// Cells of a side times their pixels is the side of the net's input; grids may end with a cell more or less.
void CheckScales(const LayerSetup& setup, const Yolov3DetectionOutputParameter& param,
                 const std::vector<YoloGrid>& grids) {
  const auto scale = [&](size_t i) { return int64_t{param.anchors_scale(static_cast<int>(i))}; };
  const auto text = [&](size_t i) {
    const auto by = [](int64_t a, int64_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    return by(grids[i].height, grids[i].width) + " cells of " + std::to_string(scale(i)) +
           " pixels (anchors_scale) are " + by(grids[i].height * scale(i), grids[i].width * scale(i));
  };
  for (size_t i = 1; i < grids.size(); ++i) {
    const int64_t room = scale(0) + scale(i);
    const auto agree = [&](int64_t first, int64_t other) {
      return std::abs(first * scale(0) - other * scale(i)) <= room;
    };
    if (agree(grids[0].width, grids[i].width) && agree(grids[0].height, grids[i].height)) continue;
    setup.Fail("yolov3_detection_output_param.anchors_scale",
               "bottoms 0 and " + std::to_string(i) + ", " + setup.DescribeBottom(0) + " and " +
                   setup.DescribeBottom(static_cast<int>(i)) + ", are not of one net's input: " + text(0) +
                   " (height x width), " + text(i) +
                   "; anchors_scale, and the masks, must stand in the order of the bottoms");
  }
}

}  // namespace

std::vector<uint32_t> AllAnchors(int sides) {
  std::vector<uint32_t> anchors(static_cast<size_t>(sides / 2));
  std::iota(anchors.begin(), anchors.end(), 0u);
  return anchors;
}

YoloGrid YoloGridOf(const LayerSetup& setup, int i, const YoloFields& fields) {
  CheckAnchors(setup, fields);
  const Shape& shape = setup.bottom_shape(i);
  const auto anchors = static_cast<int64_t>(fields.own.size());
  if (fields.class_count < 1 || fields.class_count > 1 << 24) {
    setup.Fail(fields.block + "." + fields.classes, fields.classes + " must be in [1, 16777216]");
  }
  YoloGrid grid;
  grid.classes = fields.class_count;
  grid.centre_range = ReadInRange(setup, fields.block + ".scale_x_y", fields.scale_x_y, {.low = 1});
  grid.squared_sides = fields.new_coords;
  if (shape.axes() != 4 || shape.count() == 0 || shape[1] != anchors * grid.numbers()) {
    setup.Fail("bottom", "bottom " + std::to_string(i) + ", " + setup.DescribeBottom(i) + ", must be images x " +
                             std::to_string(anchors * grid.numbers()) +
                             " x height x width: " + std::to_string(grid.numbers()) + " numbers (5, and " +
                             fields.classes + ") for each of the " + std::to_string(anchors) + " anchors of a cell");
  }
  grid.images = shape[0];
  grid.height = shape[2];
  grid.width = shape[3];
  grid.anchors = static_cast<int32_t>(anchors);
  grid.all_anchors = static_cast<int32_t>(fields.biases.size() / 2);
  const auto side = [&](size_t number, int64_t cells) {
    return static_cast<float>(fields.biases[number] / (fields.units_per_cell * static_cast<double>(cells)));
  };
  for (size_t a = 0; a < fields.biases.size() / 2; ++a) {
    grid.anchor_width[a] = side(2 * a, grid.width);
    grid.anchor_height[a] = side(2 * a + 1, grid.height);
  }
  for (size_t a = 0; a < fields.own.size(); ++a) grid.own[a] = static_cast<int32_t>(fields.own[a]);
  return grid;
}

std::vector<YoloGrid> YoloGridsOf(const LayerSetup& setup, const Yolov3DetectionOutputParameter& param) {
  const std::string block = "yolov3_detection_output_param";
  if (param.gaussian_box()) setup.Fail(block + ".gaussian_box", "gaussian_box: true is not supported; remove it");
  setup.ExpectBottoms(1, YoloGrid::kMostAnchors);
  const auto bottoms = static_cast<size_t>(setup.bottoms());
  if (param.mask_group_num() != bottoms) {
    setup.Fail(param.has_mask_group_num() ? block + ".mask_group_num" : block,
               "mask_group_num is " + std::to_string(param.mask_group_num()) + ", but there are " +
                   std::to_string(bottoms) + " bottoms; it must be their number");
  }
  if (static_cast<size_t>(param.anchors_scale_size()) != bottoms) {
    setup.Fail(param.anchors_scale_size() > 0 ? block + ".anchors_scale" : block,
               "anchors_scale must be given for each of the " + std::to_string(bottoms) +
                   " bottoms: pixels of the net's input from cell to cell");
  }
  const size_t own = param.num_box();
  if (own == 0 || static_cast<size_t>(param.mask_size()) != own * bottoms) {
    setup.Fail(param.mask_size() > 0 ? block + ".mask" : block,
               "mask names " + std::to_string(param.mask_size()) + " anchors, but must name num_box " +
                   std::to_string(own) + " for each of the " + std::to_string(bottoms) + " bottoms");
  }
  if (param.scale_x_y_size() > 0 && static_cast<size_t>(param.scale_x_y_size()) != bottoms) {
    setup.Fail(block + ".scale_x_y", "scale_x_y stands there " + std::to_string(param.scale_x_y_size()) +
                                         " times, but must be given for each of the " + std::to_string(bottoms) +
                                         " bottoms, or not at all");
  }
  std::vector<YoloGrid> grids;
  for (size_t i = 0; i < bottoms; ++i) {
    const uint32_t scale = param.anchors_scale(static_cast<int>(i));
    if (scale == 0) setup.Fail(block + ".anchors_scale", "an anchors_scale is 0; it is pixels from cell to cell");
    const auto first = param.mask().begin() + static_cast<std::ptrdiff_t>(i * own);
    grids.push_back(YoloGridOf(setup, static_cast<int>(i),
                               {block,
                                "num_classes",
                                param.num_classes(),
                                {param.biases().begin(), param.biases().end()},
                                {first, first + static_cast<std::ptrdiff_t>(own)},
                                static_cast<double>(scale),
                                param.scale_x_y_size() > 0 ? param.scale_x_y(static_cast<int>(i)) : 1,
                                param.new_coords()}));
  }
  CheckScales(setup, param, grids);
  return grids;
}

std::vector<YoloGrid> YoloGridsOf(const LayerSetup& setup, const YoloDetectionOutputParameter& param) {
  const std::string block = "yolo_detection_output_param";
  setup.ExpectBottoms(1);
  if (param.coords() != 4) setup.Fail(block + ".coords", "coords must be 4, the numbers that tell a box");
  const std::vector<uint32_t> own = AllAnchors(param.biases_size());
  if (param.num_box() != own.size()) {
    setup.Fail(param.has_num_box() ? block + ".num_box" : block,
               "num_box is " + std::to_string(param.num_box()) + ", but biases are of " + std::to_string(own.size()) +
                   " anchors; correct one of them");
  }
  return {YoloGridOf(setup, 0,
                     {block, "num_classes", param.num_classes(), {param.biases().begin(), param.biases().end()}, own})};
}

}  // namespace crema
