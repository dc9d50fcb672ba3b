// The folder of models that come with crema, one folder each (model_zoo/README.md).
#ifndef CREMA_ZOO_ZOO_H_
#define CREMA_ZOO_ZOO_H_

#include <string>
#include <vector>

#include "zoo/card.h"

namespace crema {

struct ZooModel {
  Card card;
  std::string folder;
  bool has_weights = false;  // the file that the card names is there

  // Empty where the card names none.
  std::string weights_path() const { return card.weights.empty() ? "" : folder + "/" + card.weights; }
  // "here", "by URL" or "none".
  const char* weights_status() const { return has_weights ? "here" : !card.weights_url.empty() ? "by URL" : "none"; }
};

// `given`, if not empty; else the environment variable CREMA_ZOO; else model_zoo/ as it was installed with this
// program; else the one in a folder that holds this program, or the working directory, or in the source tree. Throws
// UserError where there is none, saying where it was looked for.
std::string FindZoo(const std::string& given);

// All models in the order of their names. Throws UserError with the mistakes of all cards.
std::vector<ZooModel> ListZoo(const std::string& zoo);

// Throws UserError where there is no model of that name.
ZooModel FindModel(const std::string& zoo, const std::string& name);

// What CopyModel did.
struct ModelCopy {
  std::vector<std::string> files;  // in the folder
  // What the solver file says now in place of what it said: "net: \"train_val.prototxt\"".
  std::vector<std::string> rewritten;
  // Paths in the files that are still those of the original: "train_val.prototxt:6: source \"build/db\"".
  std::vector<std::string> left;
};

// Copies the model's card, prototxt and text files, and weights into `folder`, which is made where it is absent. A
// solver file's `net` is then beside it, and so are its snapshots, under its name, so that the copy trains from
// everywhere. Throws UserError where a file exists, unless `force`; nothing is copied then.
ModelCopy CopyModel(const ZooModel& model, const std::string& folder, bool force);

}  // namespace crema

#endif  // CREMA_ZOO_ZOO_H_
