// Making a net for other classes out of one that is trained: new data, a new classifier, frozen layers. Works on the
// messages of net files, so that what comes out is a file that people read and edit.
#ifndef CREMA_FINETUNE_NET_SURGERY_H_
#define CREMA_FINETUNE_NET_SURGERY_H_

#include <optional>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "crema/files.h"
#include "crema/net.pb.h"

namespace crema {

// Height and width in pixels, channels 1 or 3.
struct NetInputSize {
  int channels = 0, height = 0, width = 0;
};

// What a net file says about its classification, found by its softmax.
struct Classification {
  std::string data, label;               // blobs; label is "label" where the net has none
  std::string scores;                    // the blob that the main loss, or the softmax, reads
  std::vector<std::string> classifiers;  // layers that make scores, of every loss; the last is the main one
  std::optional<TransformationParameter> train_transform, test_transform;  // of the data layers
  std::optional<NetInputSize> input;                                       // where the file fixes it
};

// The images and labels of a net, whatever it makes of them: all but `scores` and `classifiers`. Throws UserError where
// nothing gives it images.
Classification FindData(const NetFile& file, const std::string& path);

// Throws UserError, with the place of the layer and how one goes on, where the net finds objects.
void RefuseDetector(const NetFile& file, const std::string& path);

// In the state that the file says, without other stages. Throws UserError, with the place of the layer, where there is
// no softmax, what makes its scores is neither InnerProduct, Convolution nor MarginInnerProduct, or it finds objects.
Classification FindClassification(const NetFile& file, const std::string& path);

// Layers of one net that stay as they are, in the order of the file.
struct NewNet {
  std::string name;
  int classes = 0;
  std::vector<LayerParameter> data;  // layers that take the place of those that give data and labels
  // Added to the names of the classifiers, so that weights of the same name are not copied.
  std::string suffix = "_new";
  // What the learning rates of the classifiers are multiplied by.
  float classifier_rate = 10;
  // The last layer that keeps its parameters; empty: all learn.
  std::string frozen_until;
};

// The net for training and testing. `weights` tells how many blobs a layer has. Throws UserError where frozen_until is
// no layer, is a classifier, or freezes parameters that are not in the weights.
NetParameter MakeTrainNet(const NetFile& file, const Classification& from, const NewNet& wanted,
                          const std::vector<LayerWeights>& weights);

// The net that predicts: one Input of `batch` images with the transform for `crema predict`, and the probabilities
// ("prob"). `train_net` is what MakeTrainNet returned.
NetParameter MakeDeployNet(const NetParameter& train_net, const Classification& from, const NetInputSize& input,
                           const TransformationParameter& transform, int batch);

}  // namespace crema

#endif  // CREMA_FINETUNE_NET_SURGERY_H_
