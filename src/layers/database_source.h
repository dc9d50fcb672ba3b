// What layers that read images from a database share: Data and AnnotatedData.
#ifndef CREMA_LAYERS_DATABASE_SOURCE_H_
#define CREMA_LAYERS_DATABASE_SOURCE_H_

#include "data/databases/record_source.h"
#include "data/loaders/datum_loader.h"
#include "layers/image_source.h"

namespace crema {

// Reads data_param.
class DatabaseSource : public ImageSource {
 protected:
  // Of the database's first record. Throws UserError.
  virtual FirstRecord LookAt(const RecordSource& database, const Transform& transform) const = 0;

  Fields ReadFields(const LayerParameter& layer) override;
  void CheckImageFields(LayerSetup& setup) override;
  bool SourceExists() const override { return RecordSourceExists(source()); }

 private:
  const char* what_source_is() const override { return "database"; }
  const char* example_of_source() const override { return "folder of an LMDB"; }
  ImageSize ItemSizeOf(LayerSetup& setup, const Transform& transform) override;

  void CheckOrder(LayerSetup& setup, const RecordSource& database) const;

  bool force_color_ = false, force_encoded_color_ = false;
};

}  // namespace crema

#endif  // CREMA_LAYERS_DATABASE_SOURCE_H_
