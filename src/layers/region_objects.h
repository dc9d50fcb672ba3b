// What layers share that say what a net should learn which proposes regions: the true objects.
#ifndef CREMA_LAYERS_REGION_OBJECTS_H_
#define CREMA_LAYERS_REGION_OBJECTS_H_

#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "ops/detection/region_targets.h"

namespace crema {

// The objects, and those that cannot be used.
class RegionObjectCheck {
 public:
  // `bottom`: which holds the objects, N x B x 5 or, of one image, B x 5. Reports another shape. classes: with the
  // background, as num_classes says; 0: any.
  void Setup(const LayerSetup& setup, int bottom, int64_t classes);
  const RegionObjects& objects() const { return objects_; }
  // Looks for what cannot be used.
  void Run(const LayerRun& run) const;
  // Throws BadItem for the number at `position` as FindBadRegionObject tells it.
  [[noreturn]] void Refuse(int64_t position, float value) const;

 private:
  int bottom_ = 0;
  bool any_class_ = false;
  RegionObjects objects_;
  std::string name_;  // of the bottom, for messages
};

}  // namespace crema

#endif  // CREMA_LAYERS_REGION_OBJECTS_H_
