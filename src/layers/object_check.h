// What the layers that read true objects share.
#ifndef CREMA_LAYERS_OBJECT_CHECK_H_
#define CREMA_LAYERS_OBJECT_CHECK_H_

#include <string>

#include "crema/layer.h"
#include "ops/detection/object_rows.h"

namespace crema {

// Fails unless the bottom is 1 x 1 x rows x `width`; returns the number of rows. `what` they are, and which layer gives
// them, for the message.
int64_t ExpectRows(const LayerSetup& setup, int bottom, int64_t width, const std::string& what,
                   const std::string& maker);
// The same for true objects.
int64_t TrueObjectRows(const LayerSetup& setup, int bottom);

// Objects that cannot be used.
class ObjectCheck {
 public:
  // `bottom`: which holds the objects. `without`: the field that counts the classes without the background; empty:
  // num_classes counts them with it.
  void Setup(const LayerSetup& setup, int bottom, const ObjectRows& objects, const std::string& without = "");
  // Looks for them.
  void Run(const LayerRun& run) const;
  // Throws BadItem for the number at `position` as FindBadObject tells it.
  [[noreturn]] void Refuse(int64_t position, float value) const;

 private:
  int bottom_ = 0;
  ObjectRows objects_;
  std::string name_, without_;  // of the bottom and the field, for messages
};

}  // namespace crema

#endif  // CREMA_LAYERS_OBJECT_CHECK_H_
