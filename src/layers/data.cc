// Data: batches of images and labels from a database (BVLC Caffe's DataLayer, which knows one label of a record).
#include <memory>
#include <utility>

#include "data/databases/annotated_record.h"
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

  int64_t LabelCount(LayerSetup& setup, int64_t items) override {
    const int64_t labels = FindLabelCount(setup, items);
    if (labels > 0 && fields().balance_classes) {
      setup.Fail(Field("balance_classes"), "balance_classes needs records of one class each, and those of \"" +
                                               source() + "\" have " + std::to_string(labels) + " numbers; remove it");
    }
    return labels;
  }

  // 0: records have a class.
  int64_t FindLabelCount(LayerSetup& setup, int64_t items) const {
    const Shape* const given = setup.shape_override(1);
    if (!SourceExists()) return given && given->axes() > 1 ? given->count() / items : 0;
    try {
      DatumView first;
      // What is wrong with it is said where its image is read.
      if (ParseDatum(OpenRecordSource(source())->Read(0), &first)) return 0;
      return static_cast<int64_t>(first.label_count);
    } catch (const UserError& error) {
      setup.Fail(Field("source"), error.diagnostics().front().message);
    }
  }

  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform transform, const SampleOrder& order) const override {
    return std::make_shared<DatumLoader>(OpenRecordSource(source()), std::move(transform), order);
  }
};

}  // namespace

REGISTER_LAYER(Data, DataLayer, "data_param", "transform_param");

}  // namespace crema
