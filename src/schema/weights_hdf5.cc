#include "schema/weights_hdf5.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/hdf5.h"
#include "base/listed.h"
#include "crema/error.h"

namespace crema {

namespace {

// Deeper than any name of a layer; links may lead in circles.
constexpr int kMostLevels = 16, kMostGroups = 1 << 20;

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::string& path) : file_(OpenHdf5(path)) {}

  std::vector<LayerWeights> Run() {
    CheckKind();
    ReadGroup("", 0);
    return std::move(layers_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const { throw UserError({file_->path()}, message); }

  void CheckKind() const {
    const Hdf5File::Names names = file_->List("/");
    const auto has = [](const std::vector<std::string>& all, const char* name) {
      return std::find(all.begin(), all.end(), name) != all.end();
    };
    if (has(names.groups, "data")) return;
    if (has(names.datasets, "learned_net") || has(names.groups, "history")) {
      Fail(
          "is the state of a solver, not the weights of a net; give the .caffemodel.h5 that was written beside it, or "
          "go on with that training with --snapshot");
    }
    std::vector<std::string> held = names.groups;
    held.insert(held.end(), names.datasets.begin(), names.datasets.end());
    Fail(
        "is an HDF5 file, but no .caffemodel.h5: that has a group \"data\" with a group for each layer; this one has " +
        (held.empty() ? "nothing" : Listed(held)));
  }

  void ReadGroup(const std::string& layer, int level) {
    if (level > kMostLevels || ++groups_ > kMostGroups) {
      Fail("has groups within groups without end, at \"" + layer.substr(0, 64) + "...\"");
    }
    const std::string group = layer.empty() ? "data" : "data/" + layer;
    const Hdf5File::Names names = file_->List(group);
    // Without groups or datasets: of a net without parameters.
    if (level == 0 && names.groups.empty() && !names.datasets.empty()) {
      Fail("holds no layers; it is not a .caffemodel.h5");
    }
    if (level > 0 && !names.datasets.empty()) ReadLayer(layer, group, names.datasets);
    for (const std::string& name : names.groups) ReadGroup(layer.empty() ? name : layer + "/" + name, level + 1);
  }

  void ReadLayer(const std::string& name, const std::string& group, const std::vector<std::string>& datasets) {
    LayerWeights layer;
    layer.name = name;
    for (size_t i = 0; i < datasets.size(); ++i) {
      const std::string number = std::to_string(i);
      if (std::find(datasets.begin(), datasets.end(), number) == datasets.end()) {
        Fail("layer \"" + name + "\" has " + std::to_string(datasets.size()) + " blob(s), but no blob " + number +
             "; Caffe leaves out those that a layer shares with another: write the file with snapshot_format: "
             "BINARYPROTO");
      }
      layer.blobs.push_back(ReadBlob(group + "/" + number));
    }
    layers_.push_back(std::move(layer));
  }

  LayerWeights::Blob ReadBlob(const std::string& dataset) const {
    LayerWeights::Blob blob;
    blob.shape = Shape(file_->Extents(dataset));
    try {
      blob.data.resize(static_cast<size_t>(blob.shape.count()));
    } catch (const std::bad_alloc&) {
      Fail("dataset \"" + dataset + "\" of " + blob.shape.ToString() + " does not fit into memory; is it damaged?");
    }
    file_->Read(dataset, blob.data.data());
    return blob;
  }

  const std::unique_ptr<Hdf5File> file_;
  std::vector<LayerWeights> layers_;
  int groups_ = 0;  // seen
};

}  // namespace

std::vector<LayerWeights> ReadHdf5Weights(const std::string& path) { return Hdf5Reader(path).Run(); }

}  // namespace crema
