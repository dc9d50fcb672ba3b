// Makes a net of the sections of a .cfg, one after the other, and what reads a section on the way.
#ifndef CREMA_DARKNET_NET_READER_H_
#define CREMA_DARKNET_NET_READER_H_

#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "darknet/import.h"
#include "darknet/settings.h"
#include "darknet/training.h"
#include "darknet/weights_plan.h"

namespace crema::darknet {

// Extents that a section may name: what is above is a mistake, and products of several still fit 64 bits.
constexpr int64_t kMostExtent = 1 << 20;

// What a section makes: images (N x channels x height x width) or vectors (N x outputs).
struct Value {
  std::string blob;
  Shape shape;
};

// Objects that a [yolo] or [region] section tells of the predictions that it reads.
struct Grid {
  Location where;
  std::string blob;
  std::vector<float> anchors;  // width and height of each, one pair after the other
  std::vector<int64_t> mask;   // the grid's own
  int64_t classes = 0;
  int64_t pixels = 0;  // of the net's input from cell to cell
  float scale_x_y = 1;
  bool new_coords = false;
  std::string name;  // of the section
  // How [yolo] and how [region] learn, without the above.
  Yolov3Parameter learnt;
  RegionLossParameter region_learnt;
};

// A section reads what failed, and was complained about.
class FailedBefore : public std::exception {};

class SectionReader;

class NetReader {
 public:
  // `path` is the file's. Both must outlive it.
  NetReader(const std::vector<CfgSection>& sections, std::string path, const DarknetImportOptions& options);

  // The net without weights, which Weights() takes from a file. Throws UserError with everything that has no form.
  ImportedNet Read();
  WeightsPlan& weights() { return weights_; }
  // Where the options name data: what trains the net that Read() made.
  DarknetTraining Training(const NetParameter& deploy) const;
  // Warns of the first layer that neither learns nor has weights.
  void NoteFrozenAtRandom(ImportedNet* imported) const;

 private:
  friend class SectionReader;

  // What the others may read of a section.
  struct Result {
    std::optional<Value> value;
    bool ends = false;  // it makes nothing that another section may read
    // It is without the section's logistic, which [yolo] with new_coords does itself.
    bool before_logistic = false;
  };

  void ReadNet();
  void ReadSection(int index);
  // Of the layers of a section, from `first_layer` to the last one so far.
  void SetRates(const SectionLearning& learning, int first_layer);
  void AddDetection();
  // What no layer reads.
  void ListOutputs();
  // Appends the layer, whose name, bottoms and tops are set.
  LayerShapes Append(LayerParameter layer, const std::vector<Shape>& bottoms, const Location& where);

  const std::vector<CfgSection>& sections_;
  const std::string path_;
  const DarknetImportOptions& options_;
  Diagnostics problems_;
  std::set<std::string> warned_;
  ImportedNet result_;
  WeightsPlan weights_;
  std::map<std::string, Shape> shapes_;  // by blob
  Value input_;
  std::vector<Result> results_;  // of the sections behind [net]
  std::vector<Grid> yolo_, region_;
  TrainingSettings training_;
  bool classifies_ = false;  // ends in a softmax
};

// One section. Whatever it throws is reported as the section's mistake.
class SectionReader {
 public:
  // index: the section's number as Darknet counts them, from 0 behind [net].
  SectionReader(NetReader& net, int index, Settings* settings);

  Settings& settings() { return *settings_; }
  int index() const { return index_; }
  // Of the layer that does the section's work: "conv_12".
  const std::string& name() const { return name_; }
  void set_kind(const std::string& kind) { name_ = kind + "_" + std::to_string(index_); }
  // Stops with a diagnostic at the section's heading.
  [[noreturn]] void Refuse(const std::string& message) const;
  const Value& net_input() const { return net_.input_; }

  // --- What it reads. All throw where that is not there; settings are to be read before ---

  // Of the section before, or the net's input, red first.
  Value Input();
  // The same, where the section sees to it that the net's input comes blue first: `swapped`.
  Value InputInAnyOrder(bool* swapped);
  // Of section `number`, which counts back from this one where it is below 0.
  Value OutputOf(int64_t number);
  // Of the section before, which must be a [convolutional] with activation=logistic: without that.
  Value InputBeforeLogistic();
  // As an image; a vector has one pixel.
  Value AsImage(const Value& value);

  // --- What it makes ---

  // Appends a layer with one top; its name is the section's, with "_role" behind it where there is one.
  Value Add(LayerParameter layer, const std::vector<Value>& bottoms, const std::string& role = {});
  // The same of one that writes over its bottom.
  void AddInPlace(LayerParameter layer, const Value& value, const std::string& role);
  // The last layer in the plan of weights, with all its blobs: its number there.
  int PlanWeights();
  // The same of one with a single blob, whose numbers are not in the file.
  void PlanFixed(const FixedWeights& weights);
  WeightsPlan& weights() { return net_.weights_; }
  // "section 12, [convolutional] in line 80".
  std::string Describe() const;

  // Channels [start, start + count), or a part of another axis.
  Value Cut(const Value& value, int axis, int64_t start, int64_t count, const std::string& role);
  Value Reshape(const Value& value, const std::vector<int64_t>& dims, const std::string& role);

  // Whether the next section is a [yolo] with new_coords.
  bool FeedsNewCoords() const;
  void SetBeforeLogistic(Value value);
  void Set(Value value) { net_.results_[static_cast<size_t>(index_)].value = std::move(value); }
  // What another section reads here is a mistake.
  void End() { net_.results_[static_cast<size_t>(index_)].ends = true; }
  // The settings of a [yolo] or a [region] that matter while training.
  void ReadYoloLearning(Grid* grid);
  void ReadRegionLearning(Grid* grid);
  void AddYolo(Grid grid) { net_.yolo_.push_back(std::move(grid)); }
  void AddRegion(Grid grid) { net_.region_.push_back(std::move(grid)); }
  void Classifies() { net_.classifies_ = true; }
  void Note(const std::string& key, const std::string& message) {
    AddNote(settings_->where(key), message, &net_.result_);
  }

 private:
  std::vector<Shape> Append(LayerParameter layer, const std::vector<Value>& bottoms);

  NetReader& net_;
  const int index_;
  Settings* settings_;
  std::string name_;
  std::vector<Shape> last_params_;  // of the last layer
};

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_NET_READER_H_
