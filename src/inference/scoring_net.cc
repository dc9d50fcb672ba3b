#include "inference/scoring_net.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/listed.h"
#include "base/paths.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "inference/needed_layers.h"
#include "report/assumed_inputs.h"

namespace crema {

namespace {

class Conversion {
 public:
  Conversion(NetFile file, const std::string& path, const NetOptions& options)
      : path_(path), state_(StateOf(file.net, options)), outputs_(options.outputs), shapes_(options.shapes) {
    state_.set_phase(TEST);
    net_.file = std::move(file);
    net_.folder = DirectoryOf(path);
  }

  ScoringNet Run() {
    FindImageInfo();
    std::vector<Source> sources = Sources();
    if (sources.size() > 1 && !outputs_.empty()) {
      std::vector<std::string> needed = outputs_;
      if (!net_.image_info.empty()) needed.push_back(net_.image_info);
      KeepWhatIsNeeded(needed, state_, path_, &net_.file.net);
      sources = Sources();
    }
    if (sources.size() != 1) throw UserError(Location{path_}, DoubtAbout(sources));
    sources[0].is_input ? TakeInput(sources[0]) : ReplaceReader(sources[0].layer);
    if (!net_.transform.mean_file().empty()) {
      net_.transform.set_mean_file(FindFile(net_.transform.mean_file(), {DirectoryOf(path_)}));
    } else {
      net_.transform.clear_mean_file();
    }
    return std::move(net_);
  }

 private:
  // A blob of an Input layer, or a layer that reads data with the first of its blobs.
  struct Source {
    int layer = 0;
    std::string blob;
    bool is_input = false;
  };

  // What comes into the net, but the sizes of images.
  std::vector<Source> Sources() const {
    std::vector<Source> sources;
    for (int i = 0; i < net_.file.net.layer_size(); ++i) {
      const LayerParameter& layer = net_.file.net.layer(i);
      if (!TakesPart(state_, layer)) continue;
      if (ReadsData(layer)) sources.push_back({i, layer.top_size() > 0 ? layer.top(0) : "", false});
      if (layer.type() != "Input") continue;
      for (const std::string& top : layer.top()) {
        if (top != net_.image_info) sources.push_back({i, top, true});
      }
    }
    return sources;
  }

  std::string DoubtAbout(const std::vector<Source>& sources) const {
    if (sources.empty()) {
      return "has no input for images: expected one Input layer, or in TEST one data layer" + LeftOut();
    }
    std::vector<std::string> blobs;
    for (const Source& source : sources) blobs.push_back(source.blob);
    const std::string needs = "; images can go into one blob only";
    const std::string list = std::to_string(sources.size()) + " inputs, " + Listed(blobs, {.quoted = true});
    if (!outputs_.empty()) return "needs " + list + " for " + Listed(outputs_, {.quoted = true}) + needs;
    return "has " + list + "; expected one blob of an Input layer, or in TEST one data layer" + needs +
           "; a blob that needs one of them alone can be named with --blob=NAME";
  }

  LayerParameter* Layer(int i) { return net_.file.net.mutable_layer(i); }

  Location Where(int i, std::string_view field = {}) const {
    return net_.file.source ? net_.file.source->Layer(i, field) : Location{path_};
  }

  // What to say of layers with data that are not in this net.
  std::string LeftOut() const {
    std::string names;
    for (const LayerParameter& layer : net_.file.net.layer()) {
      if (!ReadsData(layer) && layer.type() != "Input") continue;
      names += (names.empty() ? " \"" : ", \"") + layer.name() + "\" (" + layer.type() + ")";
    }
    if (names.empty()) return "";
    return "; include or exclude rules leave these out of this phase, level and stage:" + names +
           "; a net with stages, such as DIGITS', is told which with --stage=NAME";
  }

  // What layers read that know the sizes of images, if an Input layer makes it.
  void FindImageInfo() {
    std::set<std::string> read;
    for (const LayerParameter& layer : net_.file.net.layer()) {
      if (!TakesPart(state_, layer)) continue;
      if (layer.type() == "Proposal" && layer.bottom_size() == 3) read.insert(layer.bottom(2));
      if (layer.type() == "DetectionOutput" && layer.bottom_size() == 4) read.insert(layer.bottom(3));
    }
    for (const LayerParameter& layer : net_.file.net.layer()) {
      if (layer.type() != "Input" || !TakesPart(state_, layer)) continue;
      for (const std::string& top : layer.top()) {
        if (read.count(top) > 0) net_.image_info = top;
      }
    }
  }

  void TakeInput(const Source& source) {
    LayerParameter* layer = Layer(source.layer);
    net_.input = source.blob;
    net_.has_shape = layer->input_param().shape_size() > 0;
    if (net_.has_shape && layer->input_param().shape(0).dim_size() > 0) {
      net_.batch = layer->input_param().shape(0).dim(0);
    }
    net_.says_transform = layer->has_transform_param();
    net_.transform = layer->transform_param();
    net_.transform_at = Where(source.layer, "transform_param");
  }

  void ReplaceReader(int i) {
    LayerParameter* layer = Layer(i);
    if (layer->type() == "AnnotatedData") {
      throw UserError(
          Where(i, "type"),
          "layer \"" + layer->name() +
              "\" (AnnotatedData) gives images with the boxes of their objects: a net that finds objects is "
              "measured by crema test, and crema detect shows what it finds with its deploy net, whose Input "
              "layer takes the place of this one");
    }
    if (layer->top_size() < 1) throw UserError(Where(i), "layer \"" + layer->name() + "\" has no top");
    net_.input = layer->top(0);
    const bool of_pixels = layer->type() == "DenseImageData" || layer->type() == "ImageSegData";  // labels
    // Of records of any kind who runs the net says the shape, and makes the values ready.
    const bool of_arrays = layer->type() == "HDF5Data" || layer->type() == "VideoData";
    const bool shape_given =
        std::any_of(shapes_.begin(), shapes_.end(), [this](const auto& given) { return given.first == net_.input; });
    const bool of_images = layer->type() == "Data" || layer->type() == "ImageData" || layer->type() == "MemoryData";
    if (!of_images && !of_pixels && !(of_arrays && shape_given)) {
      // What feeds a net with these has no other way in.
      throw UserError(
          Where(i, "type"),
          "layer \"" + layer->name() + "\" (" + layer->type() +
              ") gives no images with one class each, as Data, ImageData, MemoryData and Input do: " +
              (of_arrays ? "crema test measures the net on what this layer reads in TEST, and crema extract "
                           "--blob=NAME, without images, writes what the net makes of each record of it; to give it "
                           "other records, or export it, say their shape, --shape=" +
                               net_.input + "=N,..."
                         : "use the deploy net"));
    }
    net_.reader = layer->type();
    net_.batch = BatchOf(*layer);
    net_.says_transform = !of_arrays || layer->has_transform_param();
    net_.transform = layer->transform_param();
    net_.transform_at = Where(i, "transform_param");
    if (layer->type() == "Data") {
      if (layer->data_param().force_encoded_color()) net_.transform.set_force_color(true);
      net_.database = FindFile(layer->data_param().source(), {DirectoryOf(path_)});
    } else if (layer->type() == "ImageData") {
      const ImageDataParameter& param = layer->image_data_param();
      net_.list = FindFile(param.source(), {DirectoryOf(path_)});
      net_.list_root = FindFile(param.root_folder(), {DirectoryOf(path_)});
      net_.list_label_count = param.label_count();
      TakeSize(param);
    } else if (layer->type() == "DenseImageData") {
      TakeSize(layer->dense_image_data_param());
    } else if (layer->type() == "ImageSegData") {
      TakeSize(layer->image_data_param());
    }
    std::set<std::string> labels(layer->top().begin() + 1, layer->top().end());
    LayerParameter input;
    input.set_name(layer->name());
    input.set_type("Input");
    input.add_top(net_.input);
    *input.mutable_include() = layer->include();
    *input.mutable_exclude() = layer->exclude();
    if (layer->type() == "MemoryData") {
      const MemoryDataParameter& param = layer->memory_data_param();
      BlobShape* shape = input.mutable_input_param()->add_shape();
      for (const uint32_t extent : {param.batch_size(), param.channels(), param.height(), param.width()}) {
        shape->add_dim(extent);
      }
      net_.has_shape = true;
    }
    *layer = std::move(input);
    RemoveReadersOf(&labels);
  }

  // Of whichever block the layer has.
  static int64_t BatchOf(const LayerParameter& layer) {
    const std::string& type = layer.type();
    if (type == "Data") return layer.data_param().batch_size();
    if (type == "MemoryData") return layer.memory_data_param().batch_size();
    if (type == "DenseImageData") return layer.dense_image_data_param().batch_size();
    if (type == "HDF5Data") return layer.hdf5_data_param().batch_size();
    if (type == "VideoData") return layer.video_data_param().batch_size();
    return layer.image_data_param().batch_size();
  }

  // As a layer that reads image files resizes them.
  template <typename Param>
  void TakeSize(const Param& param) {
    if (param.new_height() > 0) net_.transform.set_resize_height(param.new_height());
    if (param.new_width() > 0) net_.transform.set_resize_width(param.new_width());
    const bool grey = !param.is_color() || net_.transform.force_gray();
    net_.transform.clear_force_gray();
    net_.transform.clear_force_color();
    grey ? net_.transform.set_force_gray(true) : net_.transform.set_force_color(true);
  }

  // Takes out what reads labels, or what came of them.
  void RemoveReadersOf(std::set<std::string>* labels) {
    int loss = -1, accuracy = -1;
    const std::set<std::string> of_data = *labels;
    std::map<std::string, int> reader_of;  // of what came of labels, the layer that read these
    for (int i = 0; i < net_.file.net.layer_size(); ++i) {
      LayerParameter* layer = Layer(i);
      if (!TakesPart(state_, *layer)) continue;
      const auto& bottoms = layer->bottom();
      if (std::none_of(bottoms.begin(), bottoms.end(), [&](const auto& name) { return labels->count(name) > 0; })) {
        continue;
      }
      const bool scored = labels->count(layer->bottom(0)) == 0;
      if (scored && ReadsLabelsInTrainingOnly(*layer)) {
        RemoveLabels(layer);
        continue;
      }
      if (scored && layer->type() == "MixUp" && layer->top_size() == 2) {
        labels->insert(layer->top(1));
        LeaveOutMixing(layer);
        continue;
      }
      const auto read =
          std::find_if(bottoms.begin(), bottoms.end(), [&](const auto& name) { return labels->count(name); });
      const auto before = reader_of.find(*read);
      for (const std::string& top : layer->top()) {
        labels->insert(top);
        reader_of.try_emplace(top, before == reader_of.end() ? i : before->second);
      }
      if (IsSoftmaxLoss(*layer) && scored) loss = i;
      if (layer->type() == "Accuracy" && scored) {
        accuracy = i;
        net_.scores = layer->bottom(0);
      }
      removed_.push_back(i);
    }
    RefuseOutputsOf(of_data, reader_of);
    for (const int i : removed_) {
      if (i == loss) {
        ReplaceLoss(i);
      } else {
        LeaveOut(state_.phase(), Layer(i));
      }
    }
    const auto sequences = std::find_if(removed_.begin(), removed_.end(), [&](int i) {
      return Layer(i)->type() == "CtcLoss" || Layer(i)->type() == "LabelsequenceAccuracy";
    });
    if (outputs_.empty() && loss < 0 && accuracy < 0 && sequences != removed_.end()) {
      throw UserError(Where(*sequences, "type"),
                      "layer \"" + Layer(*sequences)->name() + "\" (" + Layer(*sequences)->type() +
                          ") reads sequences of labels, and no classes: crema test measures such a net, by a "
                          "LabelsequenceAccuracy layer, and crema predict reads texts with its deploy net, which ends "
                          "in a CtcDecoder");
    }
    if (outputs_.empty() && loss < 0 && accuracy < 0) {
      throw UserError(
          Location{path_},
          "has neither a SoftmaxWithLoss nor an Accuracy layer in TEST that reads the labels of its data; "
          "use the deploy net, which ends in the scores of the classes, or name what is wanted with "
          "--blob=NAME: crema extract and export take any blob, such as what the loss of a regression reads");
    }
  }

  // Where a blob that is wanted is among the labels, or came of them, and no other layer makes it.
  void RefuseOutputsOf(const std::set<std::string>& labels, const std::map<std::string, int>& reader_of) {
    for (const std::string& name : outputs_) {
      const auto reader = reader_of.find(name);
      if (reader == reader_of.end() && labels.count(name) == 0) continue;
      bool made = false;  // by a layer that stays
      for (int i = 0; i < net_.file.net.layer_size() && !made; ++i) {
        const auto& tops = Layer(i)->top();
        made = TakesPart(state_, *Layer(i)) && std::count(removed_.begin(), removed_.end(), i) == 0 &&
               std::count(tops.begin(), tops.end(), name) > 0;
      }
      if (made) continue;
      const std::string remedy =
          "; labels are left out where a net is used: crema extract --iterations=N, without images, writes what "
          "the net makes of its own data, labels and all";
      if (reader == reader_of.end()) {
        throw UserError(Location{path_}, "blob \"" + name + "\" holds the labels of the net's data" + remedy);
      }
      const LayerParameter& by = *Layer(reader->second);
      throw UserError(Where(reader->second), "blob \"" + name + "\" comes of labels, which layer \"" + by.name() +
                                                 "\" (" + by.type() + ") reads" + remedy);
    }
  }

  void ReplaceLoss(int i) {
    LayerParameter* layer = Layer(i);
    LayerParameter softmax;
    softmax.set_name(layer->name());
    softmax.set_type("Softmax");
    softmax.add_bottom(layer->bottom(0));
    softmax.add_top(layer->name() + " probabilities");
    if (layer->has_softmax_param()) *softmax.mutable_softmax_param() = layer->softmax_param();
    *softmax.mutable_include() = layer->include();
    *softmax.mutable_exclude() = layer->exclude();
    net_.scores = softmax.top(0);
    *layer = std::move(softmax);
  }

  std::string path_;
  NetState state_;
  const std::vector<std::string> outputs_;  // empty: scores are needed
  const BlobShapes shapes_;
  ScoringNet net_;
  std::vector<int> removed_;
};

}  // namespace

bool IsSoftmaxLoss(const LayerParameter& layer) {
  const std::string& type = layer.type();
  return type == "SoftmaxWithLoss" || type == "WeightedSoftmaxWithLoss" || type == "SoftmaxCrossEntropyLoss" ||
         type == "FocalLoss" || type == "SoftmaxFocalLoss";
}

bool MakesObjects(const LayerParameter& layer) {
  return layer.type().ends_with("DetectionOutput") || layer.type() == "ClusterDetections";
}

bool ReadsLabelsInTrainingOnly(const LayerParameter& layer) {
  return layer.type() == "MarginInnerProduct" || layer.type() == "LabelSpecificAdd";
}

void RemoveLabels(LayerParameter* layer) {
  while (layer->bottom_size() > 1) layer->mutable_bottom()->RemoveLast();
  while (layer->top_size() > 1) layer->mutable_top()->RemoveLast();  // lambda
  if (layer->propagate_down_size() > 1) layer->mutable_propagate_down()->Truncate(1);
  if (layer->has_label_specific_add_param()) layer->mutable_label_specific_add_param()->clear_transform_test();
}

void LeaveOutMixing(LayerParameter* mix_up) {
  RemoveLabels(mix_up);
  mix_up->set_type("Split");
  mix_up->clear_propagate_down();
  mix_up->clear_loss_weight();
  mix_up->clear_mixup_param();
}

ScoringNet MakeScoringNet(NetFile file, const std::string& path, const NetOptions& options) {
  return Conversion(std::move(file), path, options).Run();
}

}  // namespace crema
