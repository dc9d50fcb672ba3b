// A net as it is used: an input for images and scores of classes, no labels.
#ifndef CREMA_INFERENCE_SCORING_NET_H_
#define CREMA_INFERENCE_SCORING_NET_H_

#include <cstdint>
#include <string>

#include "crema/data.pb.h"
#include "crema/files.h"
#include "crema/net.h"

namespace crema {

struct ScoringNet {
  NetFile file;
  std::string input;       // blob of the images
  bool has_shape = false;  // the file says the input's shape
  int64_t batch = 0;       // of the input as the file says; 0: it does not
  // Blob of the images' sizes, which Proposal and DetectionOutput read (im_info of Faster R-CNN); empty: there is none.
  std::string image_info;
  // How images are made ready, as the Input layer of a deploy net says, or the data layer that the input stands for.
  TransformationParameter transform;
  Location transform_at;
  bool says_transform = false;
  std::string reader;  // type of that data layer; empty of a deploy net
  // What that data layer reads in TEST, as found from the working directory or the net's folder: a database, or a list
  // of image files with its root (own_images.h). Empty where there is none.
  std::string database, list, list_root;
  std::string folder;             // of the net's file
  uint32_t list_label_count = 0;  // ImageDataParameter.label_count
  std::string scores;             // blob; empty: the net's output
};

// Of a deploy net, itself. Of a net for training, what remains of its TEST form without labels: an Input layer in place
// of the data layer, images that pass through MixUp, and probabilities in place of SoftmaxWithLoss; scores are then
// these, or else what Accuracy reads. Of a net with several inputs, what options.outputs need. `path` is the file's,
// `options` says level and stages, and the shape of an input in place of HDF5Data or VideoData. Throws UserError where
// the file has no input for images, or several that are needed, where a net for training has no scores and
// options.outputs names nothing else to look at, and where one of these is made of labels.
ScoringNet MakeScoringNet(NetFile file, const std::string& path, const NetOptions& options);

// SoftmaxWithLoss, weighted and FocalLoss by its names: losses whose first bottoms are scores of classes and labels.
bool IsSoftmaxLoss(const LayerParameter& layer);

// Layers whose tops are the objects that a net finds: DetectionOutput, those of YOLO, and DetectNet's.
bool MakesObjects(const LayerParameter& layer);

// Layers whose labels make a margin while training; the scores of TEST are plain.
bool ReadsLabelsInTrainingOnly(const LayerParameter& layer);
// Makes such a layer do without, and without the top that says how large the margin is.
void RemoveLabels(LayerParameter* layer);

// Makes of a MixUp layer what it does of images in TEST, without labels.
void LeaveOutMixing(LayerParameter* mix_up);

}  // namespace crema

#endif  // CREMA_INFERENCE_SCORING_NET_H_
