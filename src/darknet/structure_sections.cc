// Sections without weights: poolings, and what joins, repeats or moves what other sections make.
#include <algorithm>

#include "darknet/activation.h"
#include "darknet/section_table.h"
#include "import/pooled_windows.h"

namespace crema::darknet {

namespace {

// --- Poolings ---

// Darknet pads by `padding` in all, the smaller half before the image, with what is never the maximum.
void MaxPool(SectionReader& section) {
  Settings& settings = section.settings();
  const int64_t stride = settings.Int("stride", 1, 1, kMostExtent),
                horizontal = settings.Int("stride_x", stride, 1, kMostExtent),
                vertical = settings.Int("stride_y", stride, 1, kMostExtent),
                size = settings.Int("size", stride, 1, kMostExtent),
                padding = settings.Int("padding", size - 1, 0, kMostExtent);
  settings.Only("maxpool_depth", 0, "maxima over channels");
  settings.Only("antialiasing", 0, "a blur behind the pooling");
  settings.Only("maxpool_zero_nonmax", 0, "zeros in the place of what is no maximum");
  settings.Ignore("out_channels");
  const Value input = section.AsImage(section.Input());
  std::vector<PooledAxis> axes(2);
  for (int i = 0; i < 2; ++i) {
    PooledAxis& axis = axes[static_cast<size_t>(i)];
    axis.input = input.shape[2 + i];
    axis.kernel = size;
    axis.stride = i == 0 ? vertical : horizontal;
    axis.before = padding / 2;
    axis.after = padding - axis.before;
    const int64_t room = axis.input + padding - size;
    if (room < 0) {
      section.Refuse("size=" + std::to_string(size) + " is more than the " + std::to_string(axis.input) +
                     " pixels and the padding that it reads");
    }
    if (axis.after >= size) {
      section.Refuse("padding=" + std::to_string(padding) + " is too much for size=" + std::to_string(size) +
                     ": a window would lie outside of the image; " + std::to_string(2 * size - 2) + " is the most");
    }
    axis.results = room / axis.stride + 1;
  }
  const std::optional<PooledWindows> windows = FitPooling(true, axes);
  if (!windows) {
    section.Refuse("padding=" + std::to_string(padding) + " reaches further behind the image than windows of size=" +
                   std::to_string(size) + " and this stride can be laid here; lower it");
  }
  const bool cuts = windows->cuts_off();
  Value value = section.Add(PoolingLayerOf(PoolingParameter::MAX, *windows), {input}, cuts ? "pool" : "");
  for (int i = 0; i < 2; ++i) {
    const PooledAxis& axis = windows->axes[static_cast<size_t>(i)];
    value = section.Cut(value, 2 + i, axis.first, axis.results, i == 0 ? "rows" : "columns");
  }
  section.Set(value);
}

void AvgPool(SectionReader& section) {
  const Value input = section.AsImage(section.Input());
  LayerParameter layer = LayerOf("Pooling");
  layer.mutable_pooling_param()->set_pool(PoolingParameter::AVE);
  layer.mutable_pooling_param()->set_global_pooling(true);
  section.Set(section.Add(std::move(layer), {input}));
}

// --- What other sections make ---

void Route(SectionReader& section) {
  Settings& settings = section.settings();
  const std::vector<int64_t> sources = settings.Ints("layers");
  const int64_t groups = settings.Int("groups", 1, 1, kMostExtent), group = settings.Int("group_id", 0, 0, kMostExtent);
  settings.Ignore("stream wait_stream");
  if (!settings.has("layers")) section.Refuse("does not say which sections it reads; give it layers");
  if (group >= groups) section.Refuse("group_id must be below groups, which is " + std::to_string(groups));
  std::vector<Value> parts;
  for (const int64_t source : sources) parts.push_back(section.OutputOf(source));
  if (parts.empty()) throw FailedBefore();
  for (Value& part : parts) {
    if (parts.size() > 1 || groups > 1) part = section.AsImage(part);
    const Shape &shape = part.shape, &first = parts[0].shape;
    if (shape.axes() == 4 && (shape[2] != first[2] || shape[3] != first[3])) {
      section.Refuse("joins images of different sizes, " + first.ToString() + " and " + shape.ToString());
    }
    if (groups == 1) continue;
    if (shape[1] % groups != 0) {
      section.Refuse("cannot divide the " + std::to_string(shape[1]) + " channels of " + part.blob + " by groups, " +
                     std::to_string(groups));
    }
    const std::string number = parts.size() > 1 ? std::to_string(&part - parts.data()) : "";
    part = section.Cut(part, 1, group * (shape[1] / groups), shape[1] / groups, "part" + number);
  }
  section.Set(parts.size() == 1 ? parts[0] : section.Add(LayerOf("Concat"), parts));
}

Value Combined(SectionReader& section, const std::vector<Value>& values, EltwiseParameter::EltwiseOp operation) {
  LayerParameter layer = LayerOf("Eltwise");
  if (operation != EltwiseParameter::SUM) layer.mutable_eltwise_param()->set_operation(operation);
  return section.Add(std::move(layer), values);
}

void Shortcut(SectionReader& section) {
  Settings& settings = section.settings();
  const std::vector<int64_t> sources = settings.Ints("from");
  const std::string activation = ReadActivation(section, "linear"), weights = settings.Word("weights_type", "none");
  if (weights != "none") {
    settings.Refuse("weights_type", "weights_type: sums with weights are not possible; only weights_type=none is");
  }
  settings.Only("alpha", 1, "a sum with weights");
  settings.Only("beta", 1, "a sum with weights");
  settings.Ignore("weights_normalization");
  if (!settings.has("from")) section.Refuse("does not say which section it adds; give it from");
  std::vector<Value> terms = {section.Input()};
  for (const int64_t source : sources) {
    terms.push_back(section.OutputOf(source));
    if (terms.back().shape == terms[0].shape) continue;
    section.Refuse("adds " + terms.back().blob + " (" + terms.back().shape.ToString() + ") to " + terms[0].blob + " (" +
                   terms[0].shape.ToString() + "), of another shape, which Darknet's versions do in different ways");
  }
  if (terms.size() == 1) throw FailedBefore();
  const Value value = Combined(section, terms, EltwiseParameter::SUM);
  Activate(section, activation, value);
  section.Set(value);
}

// Of [scale_channels] and [sam], in which Darknet does nothing where either of two activations is named.
std::string ProductActivation(SectionReader& section) {
  const std::string activation = ReadActivation(section, "linear");
  if (activation != "swish" && activation != "mish") return activation;
  section.settings().Refuse("activation", "activation=" + activation + " has no effect in Darknet in [" +
                                              section.settings().kind() + "]; remove it");
  return "linear";
}

int64_t OnlySource(SectionReader& section) {
  const std::vector<int64_t> sources = section.settings().Ints("from");
  if (sources.size() != 1) {
    section.Refuse(section.settings().has("from") ? "multiplies one section; give from the number of one"
                                                  : "does not say which section it multiplies; give it from");
  }
  return sources[0];
}

void ScaleChannels(SectionReader& section) {
  const bool by_pixel = section.settings().Int("scale_wh", 0, 0, 1) != 0;
  const std::string activation = ProductActivation(section);
  const int64_t source = OnlySource(section);
  Value factors = section.AsImage(section.Input());
  const Value images = section.AsImage(section.OutputOf(source));
  const Shape &shape = factors.shape, &of = images.shape;
  if (by_pixel ? shape[1] != 1 || shape[2] != of[2] || shape[3] != of[3]
               : shape[1] != of[1] || shape[2] != 1 || shape[3] != 1) {
    section.Refuse("multiplies " + images.blob + " (" + of.ToString() + ") by " + factors.blob + " (" +
                   shape.ToString() + "), but " +
                   (by_pixel ? "scale_wh=1 wants one number for each pixel" : "it wants one number for each channel"));
  }
  Value value;
  if (by_pixel) {
    LayerParameter tile = LayerOf("Tile");
    tile.mutable_tile_param()->set_tiles(static_cast<int32_t>(of[1]));
    factors = section.Add(std::move(tile), {factors}, "tile");
    value = Combined(section, {factors, images}, EltwiseParameter::PROD);
  } else {
    factors = section.Add(LayerOf("Flatten"), {factors}, "factors");
    LayerParameter scale = LayerOf("Scale");
    scale.mutable_scale_param()->set_axis(0);
    value = section.Add(std::move(scale), {images, factors});
  }
  Activate(section, activation, value);
  section.Set(value);
}

void Sam(SectionReader& section) {
  const std::string activation = ProductActivation(section);
  const int64_t source = OnlySource(section);
  const Value factors = section.Input(), images = section.OutputOf(source);
  if (factors.shape != images.shape) {
    section.Refuse("multiplies " + images.blob + " (" + images.shape.ToString() + ") by " + factors.blob + " (" +
                   factors.shape.ToString() + "), of another shape");
  }
  const Value value = Combined(section, {factors, images}, EltwiseParameter::PROD);
  Activate(section, activation, value);
  section.Set(value);
}

void Upsample(SectionReader& section) {
  constexpr int64_t kMostStride = 64;
  Settings& settings = section.settings();
  const int64_t stride = settings.Int("stride", 2, 1, kMostStride);
  const float factor = settings.Number("scale", 1);
  LayerParameter layer = LayerOf("Upsample");
  layer.mutable_upsample_param()->set_scale(static_cast<uint32_t>(stride));
  const Value result = section.Add(std::move(layer), {section.AsImage(section.Input())});
  if (factor != 1) {
    LayerParameter power = LayerOf("Power");
    power.mutable_power_param()->set_scale(factor);
    section.AddInPlace(std::move(power), result, "scale");
  }
  section.Set(result);
}

// [reorg] moves pixels as if its input had stride^2 times fewer channels and as many times more pixels; so does
// crema's layer.
void Reorg(SectionReader& section) {
  Settings& settings = section.settings();
  LayerParameter layer = LayerOf("Reorg");
  layer.mutable_reorg_param()->set_stride(static_cast<int32_t>(settings.Int("stride", 1, 1, INT16_MAX)));
  if (settings.Int("reverse", 0, 0, 1) != 0) layer.mutable_reorg_param()->set_reverse(true);
  settings.Only("flatten", 0, "pixels before channels");
  settings.Only("extra", 0, "zeros behind the channels");
  const Value input = section.AsImage(section.Input());
  section.Set(section.Add(std::move(layer), {input}));
}

// [reorg3d]: squares of stride x stride pixels become channels, all first pixels before all second ones.
void Reorg3d(SectionReader& section) {
  Settings& settings = section.settings();
  const int64_t stride = settings.Int("stride", 1, 1, INT16_MAX);
  settings.Only("reverse", 0, "channels become pixels");
  const Value input = section.AsImage(section.Input());
  const Shape& shape = input.shape;
  if (shape[2] % stride != 0 || shape[3] % stride != 0) {
    section.Refuse("cannot divide height and width of " + input.blob + " (" + shape.ToString() + ") by stride, " +
                   std::to_string(stride));
  }
  const int64_t rows = shape[2] / stride, columns = shape[3] / stride;
  Value value = section.Reshape(input, {0, shape[1], rows, stride, columns, stride}, "squares");
  LayerParameter permute = LayerOf("Permute");
  for (const uint32_t axis : {0, 3, 5, 1, 2, 4}) permute.mutable_permute_param()->add_order(axis);
  value = section.Add(std::move(permute), {value}, "permute");
  section.Set(section.Reshape(value, {0, shape[1] * stride * stride, rows, columns}, ""));
}

// --- Ends ---

void Softmax(SectionReader& section) {
  Settings& settings = section.settings();
  settings.Only("groups", 1, "several softmaxes side by side");
  settings.Only("temperature", 1, "scores that are divided first");
  settings.Only("spatial", 0, "a softmax for each pixel");
  settings.Never("tree", "a hierarchy of classes");
  Value input = section.Input();
  if (input.shape.axes() != 2) input = section.Add(LayerOf("Flatten"), {input}, "flatten");
  section.Classifies();
  section.Set(section.Add(LayerOf("Softmax"), {input}));
}

// Leaves elements out while training only.
void Dropout(SectionReader& section) {
  section.settings().Ignore("probability dropblock dropblock_size_rel dropblock_size_abs");
  section.Set(section.Input());
}

void Cost(SectionReader& section) {
  section.settings().Ignore("type scale ratio noobj thresh");
  section.Input();
  section.End();
}

}  // namespace

std::vector<SectionKind> StructureSections() {
  return {{{"maxpool", "max"}, "maxpool", MaxPool},
          {{"avgpool", "avg"}, "avgpool", AvgPool},
          {{"route"}, "route", Route},
          {{"shortcut"}, "shortcut", Shortcut},
          {{"scale_channels"}, "scale_channels", ScaleChannels},
          {{"sam"}, "sam", Sam},
          {{"upsample"}, "upsample", Upsample},
          {{"reorg"}, "reorg", Reorg},
          {{"reorg3d"}, "reorg3d", Reorg3d},
          {{"softmax", "soft"}, "softmax", Softmax},
          {{"dropout"}, "dropout", Dropout},
          {{"cost"}, "cost", Cost}};
}

}  // namespace crema::darknet
