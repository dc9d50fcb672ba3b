// Sections with weights: [convolutional] and [connected]. The file has of each its biases, then of the former scales,
// means and variances of its normalisation, then its weights; of the latter the weights come second.
#include "darknet/activation.h"
#include "darknet/section_table.h"
#include "schema/axis_values.h"

namespace crema::darknet {

namespace {

// The layers of a section as the plan of weights knows them; normalisation -1: there is none.
struct Planned {
  int product = -1, normalisation = -1, scale = -1;
};

// BatchNorm and Scale, as every Caffe has them. Darknet adds 1e-5 to the variance, which is also BatchNorm's default.
void Normalize(SectionReader& section, const Value& value, Planned* planned) {
  section.AddInPlace(LayerOf("BatchNorm"), value, "bn");
  planned->normalisation = section.PlanWeights();
  section.weights().SetBlob(planned->normalisation, 2, {1});  // the sums in the other blobs are of one pass
  LayerParameter scale = LayerOf("Scale");
  scale.mutable_scale_param()->set_bias_term(true);
  section.AddInPlace(std::move(scale), value, "scale");
  planned->scale = section.PlanWeights();
}

// Darknet's biases stand behind its normalisation, where there is one.
void TakeBiases(SectionReader& section, const Planned& planned) {
  section.weights().BeginSection(section.name(), section.Describe());
  section.weights().Take(planned.scale < 0 ? planned.product : planned.scale, 1);
}

void TakeNormalisation(SectionReader& section, const Planned& planned) {
  if (planned.scale < 0) return;
  section.weights().Take(planned.scale, 0);
  section.weights().Take(planned.normalisation, 0);
  section.weights().Take(planned.normalisation, 1);
}

struct Convolution {
  int64_t filters = 1, groups = 1, size = 1, horizontal_stride = 1, vertical_stride = 1, dilation = 1, padding = 0;
  bool normalize = false;
  std::string activation;
};

Convolution ReadConvolution(SectionReader& section) {
  Settings& settings = section.settings();
  Convolution c;
  c.filters = settings.Int("filters", 1, 1, kMostExtent);
  c.groups = settings.Int("groups", 1, 1, kMostExtent);
  c.size = settings.Int("size", 1, 1, kMostExtent);
  const int64_t stride = settings.Int("stride", 1, 1, kMostExtent);
  c.horizontal_stride = settings.Int("stride_x", stride, 1, kMostExtent);
  c.vertical_stride = settings.Int("stride_y", stride, 1, kMostExtent);
  c.dilation = settings.Int("dilation", 1, 1, kMostExtent);
  if (c.size == 1) c.dilation = 1;
  c.padding = settings.Int("padding", 0, 0, kMostExtent);
  if (settings.Int("pad", 0, 0, kMostExtent) != 0) c.padding = c.size / 2;
  if (c.dilation > 1 && 2 * c.padding != c.size - 1) {
    settings.Refuse("dilation", "dilation=" + std::to_string(c.dilation) +
                                    " is possible with pad=1 and an odd size only: Darknet pads by a multiple of it");
  }
  c.normalize = settings.Int("batch_normalize", 0, 0, 1) != 0;
  if (settings.Int("cbn", 0, 0, 1) != 0) c.normalize = true;  // differs while training only
  c.activation = ReadActivation(section, "logistic");
  settings.Only("antialiasing", 0, "a blur behind the convolution");
  settings.Only("binary", 0, "binary weights");
  settings.Only("xnor", 0, "binary weights and inputs");
  settings.Only("bin_output", 0, "binary results");
  settings.Only("flipped", 0, "weights in another order");
  settings.Only("coordconv", 0, "coordinates as channels");
  for (const char* key : {"sway", "rotate", "stretch", "stretch_sway"})
    settings.Only(key, 0, "weights that are turned");
  settings.Never("share_index", "weights of another section");
  settings.Ignore("angle assisted_excitation dot grad_centr reverse stream wait_stream");
  return c;
}

void Convolutional(SectionReader& section) {
  const Convolution c = ReadConvolution(section);
  // Weights of all input channels together can take them in any order.
  bool swapped = false;
  Value input = c.groups == 1 ? section.InputInAnyOrder(&swapped) : section.Input();
  input = section.AsImage(input);
  LayerParameter layer = LayerOf("Convolution");
  ConvolutionParameter* param = layer.mutable_convolution_param();
  param->set_num_output(static_cast<uint32_t>(c.filters));
  param->add_kernel_size(static_cast<uint32_t>(c.size));
  if (c.horizontal_stride != c.vertical_stride) {
    param->set_stride_h(static_cast<uint32_t>(c.vertical_stride));
    param->set_stride_w(static_cast<uint32_t>(c.horizontal_stride));
  } else {
    SetAxisValues({c.vertical_stride}, 1, param->mutable_stride());
  }
  SetAxisValues({c.padding * c.dilation}, 0, param->mutable_pad());
  SetAxisValues({c.dilation}, 1, param->mutable_dilation());
  if (c.groups > 1) param->set_group(static_cast<uint32_t>(c.groups));
  if (c.normalize) param->set_bias_term(false);
  const Value value = section.Add(std::move(layer), {input});
  Planned planned{.product = section.PlanWeights()};
  if (c.normalize) Normalize(section, value, &planned);
  TakeBiases(section, planned);
  TakeNormalisation(section, planned);
  section.weights().Take(planned.product, 0, {.per_channel = swapped ? c.size * c.size : 0});
  if (c.activation == "logistic" && section.FeedsNewCoords()) return section.SetBeforeLogistic(value);
  Activate(section, c.activation, value);
  section.Set(value);
}

void Connected(SectionReader& section) {
  Settings& settings = section.settings();
  const int64_t outputs = settings.Int("output", 1, 1, kMostExtent);
  const bool normalize = settings.Int("batch_normalize", 0, 0, 1) != 0;
  const std::string activation = ReadActivation(section, "logistic");
  bool swapped = false;
  const Value input = section.InputInAnyOrder(&swapped);
  LayerParameter layer = LayerOf("InnerProduct");
  layer.mutable_inner_product_param()->set_num_output(static_cast<uint32_t>(outputs));
  if (normalize) layer.mutable_inner_product_param()->set_bias_term(false);
  const Value value = section.Add(std::move(layer), {input});
  Planned planned{.product = section.PlanWeights()};
  if (normalize) Normalize(section, value, &planned);
  TakeBiases(section, planned);
  section.weights().Take(planned.product, 0, {.transposable = true, .per_channel = swapped ? input.shape.count(2) : 0});
  TakeNormalisation(section, planned);
  Activate(section, activation, value);
  section.Set(value);
}

}  // namespace

std::vector<SectionKind> DenseSections() {
  return {{{"convolutional", "conv"}, "conv", Convolutional}, {{"connected", "conn"}, "connected", Connected}};
}

}  // namespace crema::darknet
