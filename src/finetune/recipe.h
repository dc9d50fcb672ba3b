// How a net is fine-tuned: transforms, batches, rates, and the files that say so.
#ifndef CREMA_FINETUNE_RECIPE_H_
#define CREMA_FINETUNE_RECIPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "finetune/dataset.h"
#include "finetune/net_surgery.h"
#include "schema/weights_files.h"

namespace crema {

struct RecipeRequest {
  std::string model;    // path of the net file
  std::string weights;  // .caffemodel files, separated by commas; empty: from scratch
  std::string output;   // folder, absolute
  int epochs = 30;
  std::optional<double> learning_rate;  // default: that of the model's own solver, with weights 0.3 of it; else 0.001
  std::string frozen_until;
  int batch = 0;      // 0: that of the model's net, at most 64 and a quarter of the images
  int patience = 10;  // epochs without a better validation after which training ends; 0: never
  uint64_t seed = 1;
  Precision precision = Precision::kF32;
  bool augment = true;
  bool balance_classes = false;  // draw every class equally often
};

// The files of an output folder by their names: train_val.prototxt, deploy.prototxt, solver.prototxt, labels.txt, and,
// for folders of images, train.txt and val.txt. The same request gives the same files. Throws UserError where the model
// cannot be fine-tuned, or a file of weights gives it nothing, naming what is in the way. `warnings` may be null.
std::map<std::string, std::string> MakeRecipe(const RecipeRequest& request, const Dataset& dataset,
                                              const WeightsFiles& weights, std::vector<Diagnostic>* warnings = nullptr);

}  // namespace crema

#endif  // CREMA_FINETUNE_RECIPE_H_
