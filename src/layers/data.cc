// Data: batches of images and labels from a database (BVLC Caffe's DataLayer).
#include <memory>
#include <utility>

#include "data/annotated_record.h"
#include "layers/database_source.h"

namespace crema {

namespace {

class DataLayer : public DatabaseSource {
 private:
  FirstRecord LookAt(const RecordSource& database, const Transform& transform) const override {
    if (HoldsAnnotated(database)) {
      throw UserError("\"" + database.path() +
                      "\" holds images with boxes (AnnotatedDatum); layer \"AnnotatedData\" reads those");
    }
    return LookAtFirst(database, database.Read(0), transform);
  }

  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform transform, const SampleOrder& order) const override {
    return std::make_shared<DatumLoader>(OpenRecordSource(source()), std::move(transform), order);
  }
};

}  // namespace

REGISTER_LAYER(Data, DataLayer, "data_param", "transform_param");

}  // namespace crema
