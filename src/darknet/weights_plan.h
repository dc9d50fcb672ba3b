// Which numbers of a .weights file belong where in a .caffemodel.
#ifndef CREMA_DARKNET_WEIGHTS_PLAN_H_
#define CREMA_DARKNET_WEIGHTS_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "darknet/weights_file.h"
#include "import/imported_net.h"
#include "import/layers.h"

namespace crema::darknet {

// How the numbers of a blob lie in the file, where that is not as in the blob.
struct NumberOrder {
  // Rows and columns in the other order, in files that are `transposed`.
  bool transposable = false;
  // Weights of three input channels, red first, which the net takes blue first: of how many neighbours, which stay
  // together, each channel is made; 0: not so.
  int64_t per_channel = 0;
};

class WeightsPlan {
 public:
  // A layer with blobs, in the order of the net; its number.
  int AddLayer(const std::string& name, const std::string& type, const std::vector<Shape>& blobs);
  // Values of a blob that are not in the file.
  void SetBlob(int layer, int blob, const std::vector<float>& values);

  // A section that the file has numbers of. name: of its first layer; what: "section 12, [convolutional] in line 80".
  void BeginSection(const std::string& name, const std::string& what);
  // The blob's numbers come next in that section.
  void Take(int layer, int blob, const NumberOrder& order = {});

  // Reads the file; a note goes to `imported` where it ends before the net does, at the end of a section. Throws
  // UserError where it ends elsewhere, is too long or has none, EnvironmentError where it cannot be read.
  void Read(WeightsFile* file, ImportedNet* imported);
  // Moves the layers whose numbers are all there.
  void MoveTo(ImportedNet* imported);

 private:
  struct Blob {
    int layer, number;
    NumberOrder order;
  };
  struct Section {
    std::string name, what;
    std::vector<Blob> blobs;
    int64_t bytes = 0;
  };

  BlobProto* BlobOf(int layer, int number) { return layers_[static_cast<size_t>(layer)].mutable_blobs(number); }
  // How many sections the file has.
  size_t CountSections(const WeightsFile& file) const;
  void ReadSection(const Section& section, WeightsFile* file);

  std::vector<LayerParameter> layers_;  // blobs that are still to be read have no data
  std::vector<Section> sections_;
};

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_WEIGHTS_PLAN_H_
