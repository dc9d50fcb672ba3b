// What the layers that read class labels share.
#ifndef CREMA_LAYERS_LABELS_H_
#define CREMA_LAYERS_LABELS_H_

#include <string>

#include "crema/layer.h"
#include "ops/losses/softmax.h"

namespace crema {

// Bottom 1 of a layer as class labels of bottom 0.
class LabelCheck {
 public:
  // Fails unless bottom 1 holds one label for each position of bottom 0 around `axis`. `param`: the message of the file
  // that holds ignore_label ("loss_param").
  void Setup(const LayerSetup& setup, const ClassAxis& axis, const LabelRule& rule, const std::string& param);
  // The same where each item has one label, none can be ignored, and the file says nothing of an axis.
  void Setup(const LayerSetup& setup, const ClassAxis& items) { Setup(setup, items, {}, {}); }
  // The same where the layer has classes of its own, whose number the file's `field` says: one label for each of
  // `items`.
  void SetupOwnClasses(const LayerSetup& setup, int64_t items, int64_t classes, const std::string& field);
  // The same for sequences of `longest` labels each, of which those that `rule` ignores are none; of the extents of
  // bottom 1 nothing is said.
  void SetupSequences(const LayerSetup& setup, int64_t classes, int64_t longest, const LabelRule& rule);
  // Where the labels that do not count are known in full only when the layer is planned.
  void set_rule(const LabelRule& rule) { rule_ = rule; }
  // Looks for labels that are no class.
  void Run(const LayerRun& run) const;
  // Throws BadItem for the label at `position`.
  [[noreturn]] void Refuse(int64_t position, float value) const;

 private:
  int64_t classes_ = 1, labels_of_item_ = 1;
  LabelRule rule_;
  std::string scores_;  // whose classes they are, for messages
  std::string field_;   // of their number; empty: they are as many as bottom 0 has
  std::string param_;   // empty: there is none
};

}  // namespace crema

#endif  // CREMA_LAYERS_LABELS_H_
