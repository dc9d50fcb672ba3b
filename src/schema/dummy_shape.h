// The shapes that a DummyData layer's fields give.
#ifndef CREMA_SCHEMA_DUMMY_SHAPE_H_
#define CREMA_SCHEMA_DUMMY_SHAPE_H_

#include "crema/data.pb.h"
#include "crema/tensor.h"

namespace crema {

// Of that top: by `shape`, or by num, channels, height and width; a value that is given once holds for all tops. No
// axes where one is missing.
Shape ShapeOf(const DummyDataParameter& param, int top);

}  // namespace crema

#endif  // CREMA_SCHEMA_DUMMY_SHAPE_H_
