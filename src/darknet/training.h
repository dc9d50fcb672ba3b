// What a .cfg of Darknet says of training, as crema's solver and train net.
#ifndef CREMA_DARKNET_TRAINING_H_
#define CREMA_DARKNET_TRAINING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "darknet/settings.h"

namespace crema::darknet {

// Of [net]: how long and how fast, how many images at once, and how images are changed.
struct TrainingSettings {
  SolverParameter solver;  // without nets and names of files
  int64_t images = 1;      // of a batch in memory
  TransformationParameter transform;
  float jitter = 0;  // of [yolo] or [region]
  // What layers multiply the learning rate by, where it is not 1; 0: they are frozen.
  std::map<std::string, float> rates;
};

// How a section of any kind learns.
struct SectionLearning {
  float rate = 1;             // times the learning rate; 0: its parameters stay as they are
  bool stops_before = false;  // nor do those of the sections before it change
};

// Reads the keys of [net] that matter while training. Mistakes go where `settings` collects them; what Darknet does
// besides, and crema does not, to `notes`.
TrainingSettings ReadTraining(Settings* settings, std::vector<Diagnostic>* notes);
// The same of [yolo] and of [region]: how objects are learnt, besides anchors and classes; and how much smaller parts
// of images are.
void ReadLearning(Settings* settings, Yolov3Parameter* param, float* jitter, std::vector<Diagnostic>* notes);
void ReadLearning(Settings* settings, RegionLossParameter* param, float* jitter, std::vector<Diagnostic>* notes);
// Of the keys that every section may have; max_iter: how many updates there are. What Darknet does for a part of them
// goes to `notes`.
SectionLearning ReadSectionLearning(Settings* settings, int64_t max_iter, std::vector<Diagnostic>* notes);
// The keys that these read, which change nothing in a net that is used.
void IgnoreTraining(Settings* settings);
void IgnoreYoloLearning(Settings* settings);
void IgnoreRegionLearning(Settings* settings);
void IgnoreSectionLearning(Settings* settings);

// The net that learns, with the layers `losses`, and in TEST measures what it finds. deploy: the net that is used, its
// Input layer first and the one that makes objects last. data: what names of databases begin with, "raccoon" of
// raccoon_train_lmdb and raccoon_val_lmdb.
NetParameter TrainNetOf(const NetParameter& deploy, const std::vector<LayerParameter>& losses,
                        const TrainingSettings& settings, const std::string& data);

}  // namespace crema::darknet

#endif  // CREMA_DARKNET_TRAINING_H_
