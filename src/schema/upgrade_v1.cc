#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <map>

#include "schema/types_of_forks.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Today's names that are not the enum's words in CamelCase.
const std::map<std::string, std::string>& Exceptions() {
  static const std::map<std::string, std::string> names = {
      {"ABSVAL", "AbsVal"},
      {"ARGMAX", "ArgMax"},
      {"BN", "BN"},
      {"BNLL", "BNLL"},
      {"BOX_ANNOTATOR_OHEM", "BoxAnnotatorOHEM"},
      {"CONVOLUTION3D", "Convolution3D"},
      {"CROP", "AutoCrop"},
      {"DECONVOLUTION3D", "Deconvolution3D"},
      {"ELTWISE_ACCURACY", "Accuracy"},
      {"ELU", "ELU"},
      {"GELU", "GELU"},
      {"HDF5_DATA", "HDF5Data"},
      {"HDF5_OUTPUT", "HDF5Output"},
      {"LRN", "LRN"},
      {"LSTM", "LSTM"},
      {"MATMUL", "MatMul"},
      {"MULTIBOX_LOSS", "MultiBoxLoss"},
      {"MVN", "MVN"},
      {"POOLING3D", "Pooling3D"},
      {"PRELU", "PReLU"},
      {"PSROI_POOLING", "PSROIPooling"},
      {"RELU", "ReLU"},
      {"RELU6", "ReLU6"},
      {"RNN", "RNN"},
      {"ROI_ALIGN", "ROIAlign"},
      {"ROI_POOLING", "ROIPooling"},
      {"SMOOTH_L1_LOSS_OHEM", "SmoothL1LossOHEM"},
      {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
      {"SOFTMAX_WITH_LOSS_OHEM", "SoftmaxWithLossOHEM"},
      {"SPP", "SPP"},
      {"TANH", "TanH"},
  };
  return names;
}

ParamSpec* ParamAt(LayerParameter* layer, int index) {
  while (layer->param_size() <= index) layer->add_param();
  return layer->mutable_param(index);
}

// bottom, top, name, include, exclude, blobs, loss_weight and every *_param have the same name and type in both.
void CopyFieldsOfSameName(const V1LayerParameter& old, LayerParameter* layer) {
  const Reflection* reflection = old.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(old, &fields);
  for (const FieldDescriptor* field : fields) {
    const FieldDescriptor* target = layer->GetDescriptor()->FindFieldByName(std::string(field->name()));
    if (!target || target->type() != field->type() || target->is_repeated() != field->is_repeated()) continue;
    const bool message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (message && target->message_type() != field->message_type()) continue;
    if (!message && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
        field->cpp_type() != FieldDescriptor::CPPTYPE_FLOAT) {
      continue;
    }
    const Reflection* to = layer->GetReflection();
    const int count = field->is_repeated() ? reflection->FieldSize(old, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (message) {
        const Message& value =
            field->is_repeated() ? reflection->GetRepeatedMessage(old, field, i) : reflection->GetMessage(old, field);
        (field->is_repeated() ? to->AddMessage(layer, target) : to->MutableMessage(layer, target))->CopyFrom(value);
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        if (field->is_repeated()) {
          to->AddString(layer, target, reflection->GetRepeatedString(old, field, i));
        } else {
          to->SetString(layer, target, reflection->GetString(old, field));
        }
      } else {
        to->AddFloat(layer, target, reflection->GetRepeatedFloat(old, field, i));
      }
    }
  }
}

// DeepLab's SOFTMAX_LOSS divides by the number of pixels that count, which is the default of loss_param, too.
void TakeSoftmaxLoss(const SoftmaxLossParameter& old, LayerParameter* layer,
                     const std::function<Location(const char*)>& place, Diagnostics* diagnostics) {
  if (old.has_weight_source()) {
    diagnostics->Error(place("weight_source"), "layer \"" + layer->name() +
                                                   "\": weight_source is not read; write its numbers, one for each "
                                                   "class, as class_weight of loss_param instead");
  }
  if (old.ignore_label_size() > 1) {
    diagnostics->Error(place("ignore_label[1]"),
                       "layer \"" + layer->name() +
                           "\" ignores several labels, but one can be; give the pixels of all of them one label");
  } else if (old.ignore_label_size() == 1) {
    layer->mutable_loss_param()->set_ignore_label(old.ignore_label(0));
  }
}

}  // namespace

std::string TypeName(V1LayerParameter::LayerType type) {
  const std::string old = V1LayerParameter::LayerType_Name(type);
  if (old.empty() || type == V1LayerParameter::NONE) return {};
  if (const auto exception = Exceptions().find(old); exception != Exceptions().end()) return exception->second;
  std::string name;
  bool capital = true;
  for (char c : old) {
    if (c == '_') {
      capital = true;
      continue;
    }
    name += capital || c < 'A' || c > 'Z' ? c : static_cast<char>(c - 'A' + 'a');
    capital = false;
  }
  return name;
}

std::string TypeOfOldName(const std::string& name) {
  const auto* types = V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    if (PlainName(std::string(types->value(i)->name())) != PlainName(name)) continue;
    return TypeName(static_cast<V1LayerParameter::LayerType>(types->value(i)->number()));
  }
  return "";
}

bool HasOldName(const std::string& type) {
  const auto* types = V1LayerParameter::LayerType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    if (TypeName(static_cast<V1LayerParameter::LayerType>(types->value(i)->number())) == type) return true;
  }
  return false;
}

void UpgradeV1(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics) {
  for (const V1LayerParameter& old : net->layers()) {
    LayerParameter* layer = net->add_layer();
    CopyFieldsOfSameName(old, layer);
    layer->clear_param();
    if (old.has_type()) layer->set_type(TypeName(old.type()));
    for (int i = 0; i < old.param_size(); ++i) ParamAt(layer, i)->set_name(old.param(i));
    for (int i = 0; i < old.blob_share_mode_size(); ++i) {
      ParamAt(layer, i)->set_share_mode(static_cast<ParamSpec::DimCheckMode>(old.blob_share_mode(i)));
    }
    for (int i = 0; i < old.blobs_lr_size(); ++i) ParamAt(layer, i)->set_lr_mult(old.blobs_lr(i));
    for (int i = 0; i < old.weight_decay_size(); ++i) ParamAt(layer, i)->set_decay_mult(old.weight_decay(i));
    if (old.has_strict_dim()) layer->set_strict_dim(old.strict_dim());
    if (old.has_eltwise_accuracy_param()) layer->mutable_accuracy_param()->CopyFrom(old.eltwise_accuracy_param());
    if (old.has_softmaxloss_param()) {
      const std::string block = "layers[" + std::to_string(net->layer_size() - 1) + "].softmaxloss_param.";
      TakeSoftmaxLoss(
          old.softmaxloss_param(), layer, [&](const char* field) { return place(block + field); }, diagnostics);
    }
    UpgradeDataTransform(layer);
  }
  net->clear_layers();
}

}  // namespace crema
