// Shapes as files hold them.
#ifndef CREMA_SCHEMA_BLOB_SHAPE_H_
#define CREMA_SCHEMA_BLOB_SHAPE_H_

#include "crema/blob.pb.h"
#include "crema/tensor.h"

namespace crema {

inline Shape ShapeOf(const BlobShape& shape) { return Shape({shape.dim().begin(), shape.dim().end()}); }

// Files older than BlobProto.shape have four axes.
inline Shape ShapeOf(const BlobProto& blob) {
  if (blob.has_shape()) return ShapeOf(blob.shape());
  return {blob.num(), blob.channels(), blob.height(), blob.width()};
}

}  // namespace crema

#endif  // CREMA_SCHEMA_BLOB_SHAPE_H_
