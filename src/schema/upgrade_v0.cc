#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/suggest.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

using Type = V1LayerParameter::LayerType;

const std::map<std::string, Type>& V0Types() {
  static const std::map<std::string, Type> types = {
      {"accuracy", V1LayerParameter::ACCURACY},
      {"bnll", V1LayerParameter::BNLL},
      {"concat", V1LayerParameter::CONCAT},
      {"conv", V1LayerParameter::CONVOLUTION},
      {"data", V1LayerParameter::DATA},
      {"dropout", V1LayerParameter::DROPOUT},
      {"euclidean_loss", V1LayerParameter::EUCLIDEAN_LOSS},
      {"flatten", V1LayerParameter::FLATTEN},
      {"hdf5_data", V1LayerParameter::HDF5_DATA},
      {"hdf5_output", V1LayerParameter::HDF5_OUTPUT},
      {"im2col", V1LayerParameter::IM2COL},
      {"images", V1LayerParameter::IMAGE_DATA},
      {"infogain_loss", V1LayerParameter::INFOGAIN_LOSS},
      {"innerproduct", V1LayerParameter::INNER_PRODUCT},
      {"lrn", V1LayerParameter::LRN},
      {"multinomial_logistic_loss", V1LayerParameter::MULTINOMIAL_LOGISTIC_LOSS},
      {"pool", V1LayerParameter::POOLING},
      {"relu", V1LayerParameter::RELU},
      {"sigmoid", V1LayerParameter::SIGMOID},
      {"softmax", V1LayerParameter::SOFTMAX},
      {"softmax_loss", V1LayerParameter::SOFTMAX_LOSS},
      {"split", V1LayerParameter::SPLIT},
      {"tanh", V1LayerParameter::TANH},
      {"window_data", V1LayerParameter::WINDOW_DATA},
  };
  return types;
}

// The flat fields of one V0 layer, spread over the blocks of its type. `used` collects the names that had a meaning.
class Spread {
 public:
  Spread(const V0LayerParameter& old, V1LayerParameter* layer) : old_(old), layer_(layer) {}

  void Run() {
    switch (layer_->type()) {
      case V1LayerParameter::CONVOLUTION:
        return Convolution(layer_->mutable_convolution_param());
      case V1LayerParameter::IM2COL:
        return Window(layer_->mutable_convolution_param());
      case V1LayerParameter::INNER_PRODUCT:
        return Dense(layer_->mutable_inner_product_param());
      case V1LayerParameter::POOLING:
        return Pooling(layer_->mutable_pooling_param());
      case V1LayerParameter::DROPOUT:
        if (Has("dropout_ratio")) layer_->mutable_dropout_param()->set_dropout_ratio(old_.dropout_ratio());
        return;
      case V1LayerParameter::LRN:
        return Lrn(layer_->mutable_lrn_param());
      case V1LayerParameter::CONCAT:
        if (Has("concat_dim")) layer_->mutable_concat_param()->set_concat_dim(old_.concat_dim());
        return;
      case V1LayerParameter::INFOGAIN_LOSS:
        if (Has("source")) layer_->mutable_infogain_loss_param()->set_source(old_.source());
        return;
      case V1LayerParameter::HDF5_OUTPUT:
        if (Has("hdf5_output_param")) layer_->mutable_hdf5_output_param()->CopyFrom(old_.hdf5_output_param());
        return;
      case V1LayerParameter::HDF5_DATA:
        Source(layer_->mutable_hdf5_data_param());
        return;
      case V1LayerParameter::DATA:
        Source(layer_->mutable_data_param());
        if (Has("rand_skip")) layer_->mutable_data_param()->set_rand_skip(old_.rand_skip());
        return Transform();
      case V1LayerParameter::IMAGE_DATA:
        Images(layer_->mutable_image_data_param());
        return Transform();
      case V1LayerParameter::WINDOW_DATA:
        Windows(layer_->mutable_window_data_param());
        return Transform();
      default:
        return;
    }
  }

  // Fields that were set but that the type has no use for.
  std::vector<std::string> Unused() const {
    std::vector<std::string> unused;
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    old_.GetReflection()->ListFields(old_, &fields);
    for (const auto* field : fields) {
      if (!used_.count(std::string(field->name()))) unused.push_back(std::string(field->name()));
    }
    return unused;
  }

 private:
  bool Has(const char* name) {
    used_.insert(name);
    const auto* field = V0LayerParameter::descriptor()->FindFieldByName(name);
    return old_.GetReflection()->HasField(old_, field);
  }

  template <typename Param>
  void Window(Param* param) {
    if (Has("pad")) param->add_pad(old_.pad());
    if (Has("kernelsize")) param->add_kernel_size(old_.kernelsize());
    if (Has("stride")) param->add_stride(old_.stride());
  }
  template <typename Param>
  void Dense(Param* param) {
    if (Has("num_output")) param->set_num_output(old_.num_output());
    if (Has("biasterm")) param->set_bias_term(old_.biasterm());
    if (Has("weight_filler")) param->mutable_weight_filler()->CopyFrom(old_.weight_filler());
    if (Has("bias_filler")) param->mutable_bias_filler()->CopyFrom(old_.bias_filler());
  }
  void Convolution(ConvolutionParameter* param) {
    Dense(param);
    Window(param);
    if (Has("group")) param->set_group(old_.group());
  }
  void Pooling(PoolingParameter* param) {
    Window(param);
    if (Has("pool")) param->set_pool(static_cast<PoolingParameter::PoolMethod>(old_.pool()));
  }
  void Lrn(LRNParameter* param) {
    if (Has("local_size")) param->set_local_size(old_.local_size());
    if (Has("alpha")) param->set_alpha(old_.alpha());
    if (Has("beta")) param->set_beta(old_.beta());
    if (Has("k")) param->set_k(old_.k());
  }
  template <typename Param>
  void Source(Param* param) {
    if (Has("source")) param->set_source(old_.source());
    if (Has("batchsize")) param->set_batch_size(old_.batchsize());
  }
  void Images(ImageDataParameter* param) {
    Source(param);
    if (Has("rand_skip")) param->set_rand_skip(old_.rand_skip());
    if (Has("shuffle_images")) param->set_shuffle(old_.shuffle_images());
    if (Has("new_height")) param->set_new_height(static_cast<uint32_t>(std::max(old_.new_height(), 0)));
    if (Has("new_width")) param->set_new_width(static_cast<uint32_t>(std::max(old_.new_width(), 0)));
  }
  void Windows(WindowDataParameter* param) {
    Source(param);
    if (Has("det_fg_threshold")) param->set_fg_threshold(old_.det_fg_threshold());
    if (Has("det_bg_threshold")) param->set_bg_threshold(old_.det_bg_threshold());
    if (Has("det_fg_fraction")) param->set_fg_fraction(old_.det_fg_fraction());
    if (Has("det_context_pad")) param->set_context_pad(old_.det_context_pad());
    if (Has("det_crop_mode")) param->set_crop_mode(old_.det_crop_mode());
  }
  void Transform() {
    TransformationParameter transform;
    if (Has("scale")) transform.set_scale(old_.scale());
    if (Has("meanfile")) transform.set_mean_file(old_.meanfile());
    if (Has("cropsize")) transform.set_crop_size(old_.cropsize());
    if (Has("mirror")) transform.set_mirror(old_.mirror());
    if (transform.ByteSizeLong() > 0) layer_->mutable_transform_param()->CopyFrom(transform);
  }

  const V0LayerParameter& old_;
  V1LayerParameter* layer_;
  // Every layer has these.
  std::set<std::string> used_ = {"name", "type", "blobs", "blobs_lr", "weight_decay"};
};

bool IsPadding(const V1LayerParameter& layer) { return layer.has_layer() && layer.layer().type() == "padding"; }

std::string Path(int index, const char* field) { return "layers[" + std::to_string(index) + "].layer." + field; }

}  // namespace

V1LayerParameter::LayerType TypeOfV0(const std::string& type) {
  const auto found = V0Types().find(type);
  return found == V0Types().end() ? V1LayerParameter::NONE : found->second;
}

namespace {

// Gives the reader of a padding layer's top that layer's bottom and pad.
void FoldPadding(V1LayerParameter* reader, int index, const V1LayerParameter& padding, const PlaceOf& place,
                 Diagnostics* diagnostics) {
  const std::string& type = reader->layer().type();
  const std::string name = "the padding layer \"" + padding.layer().name() + "\"";
  if (!reader->has_layer() || (type != "conv" && type != "pool") || reader->bottom_size() != 1) {
    diagnostics->Error(place("layers[" + std::to_string(index) + "].bottom"),
                       name + " can only feed a \"conv\" or \"pool\" layer with one bottom, not \"" +
                           (reader->has_layer() ? reader->layer().name() : reader->name()) +
                           "\"; remove it and set pad where it is read");
    return;
  }
  if (reader->layer().pad() > 0) {
    diagnostics->Warning(place(Path(index, "pad")), "pad " + std::to_string(reader->layer().pad()) +
                                                        " is replaced by the " + std::to_string(padding.layer().pad()) +
                                                        " of " + name);
  }
  reader->mutable_layer()->set_pad(padding.layer().pad());
  *reader->mutable_bottom() = padding.bottom();
}

}  // namespace

void UpgradeV0(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics, std::vector<LayerOrigin>* origins) {
  bool any = false;
  std::map<std::string, int> padded;  // top -> index of the padding layer that wrote it last
  std::set<int> read;
  google::protobuf::RepeatedPtrField<V1LayerParameter> result;
  for (int i = 0; i < net->layers_size(); ++i) {
    V1LayerParameter* layer = net->mutable_layers(i);
    LayerOrigin origin{layer->has_layer() ? LayerOrigin::Syntax::kV0 : LayerOrigin::Syntax::kV1, i};
    any = any || layer->has_layer();
    if (IsPadding(*layer)) {
      if (layer->bottom_size() != 1 || layer->top_size() != 1) {
        diagnostics->Error(place(Path(i, "type")), "a padding layer takes one bottom and one top");
      } else {
        padded[layer->top(0)] = i;
      }
      continue;
    }
    for (int b = 0; b < layer->bottom_size(); ++b) {
      const auto source = padded.find(layer->bottom(b));
      if (source == padded.end()) continue;
      FoldPadding(layer, i, net->layers(source->second), place, diagnostics);
      origin.padding = source->second;
      read.insert(source->second);
      break;
    }
    for (const std::string& top : layer->top()) padded.erase(top);
    V1LayerParameter* upgraded = result.Add();
    upgraded->CopyFrom(*layer);
    origins->push_back(origin);
    if (!layer->has_layer()) continue;

    const V0LayerParameter& old = layer->layer();
    const Type type = TypeOfV0(old.type());
    if (type == V1LayerParameter::NONE) {
      std::vector<std::string> names;
      for (const auto& entry : V0Types()) names.push_back(entry.first);
      diagnostics->Error(place(Path(i, "type")),
                         "the old V0 syntax has no layer type \"" + old.type() + "\"" + DidYouMean(old.type(), names));
      continue;
    }
    upgraded->clear_layer();
    upgraded->set_type(type);
    if (old.has_name()) upgraded->set_name(old.name());
    *upgraded->mutable_blobs() = old.blobs();
    *upgraded->mutable_blobs_lr() = old.blobs_lr();
    *upgraded->mutable_weight_decay() = old.weight_decay();
    Spread spread(old, upgraded);
    spread.Run();
    for (const std::string& field : spread.Unused()) {
      diagnostics->Warning(place(Path(i, field.c_str())),
                           "a V0 layer of type \"" + old.type() + "\" has no use for \"" + field + "\"; it is ignored");
    }
  }
  for (const auto& [top, index] : padded) {
    if (read.count(index)) continue;
    diagnostics->Error(place(Path(index, "type")), "nothing reads the top \"" + top + "\" of the padding layer \"" +
                                                       net->layers(index).layer().name() + "\"; remove the layer");
  }
  net->mutable_layers()->Swap(&result);
  if (!diagnostics->has_errors()) {
    diagnostics->Warning(place("layers"), std::string("uses the old ") + (any ? "V0" : "V1") +
                                              " syntax (\"layers\"); upgraded on reading");
  }
}

}  // namespace crema
