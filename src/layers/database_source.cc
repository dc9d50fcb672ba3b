#include "layers/database_source.h"

#include <memory>

#include "base/byte_size.h"
#include "base/machine_memory.h"
#include "data/databases/record_read_ahead.h"

namespace crema {

DatabaseSource::Fields DatabaseSource::ReadFields(const LayerParameter& layer) {
  const DataParameter& param = layer.data_param();
  force_encoded_color_ = param.force_encoded_color();
  return {"data_param",      param.source(),  param.batch_size(),     param.prefetch(),       param.threads(),
          param.rand_skip(), param.shuffle(), param.shuffle_buffer(), param.balance_classes()};
}

void DatabaseSource::CheckImageFields(LayerSetup& setup) {
  const DataParameter& param = setup.param().data_param();
  if (param.has_backend() && param.backend() == DataParameter::LEVELDB) {
    setup.Warn(
        "data_param.backend",
        "only LMDB is read: set backend: LMDB, and source to the database that db_tool convert OLD NEW makes where "
        "it is a LevelDB");
  }
  if (force_encoded_color_ && transform().force_gray()) {
    setup.Fail("data_param.force_encoded_color", "force_encoded_color and force_gray are both set; keep one");
  }
  force_color_ = transform().force_color();
  if (force_encoded_color_) transform().set_force_color(true);
}

ImageSize DatabaseSource::ItemSizeOf(LayerSetup& setup, const Transform& transformed) {
  const std::shared_ptr<const RecordSource> database = OpenRecordSource(source());
  CheckOrder(setup, *database);
  const FirstRecord first = LookAt(*database, transformed);
  if (first.encoded) return first.item;
  const std::string raw = " has no effect: it acts on compressed images only, and the records of \"" + fields().source +
                          "\" hold raw values of " + std::to_string(first.image.channels) + " channel(s)";
  if (force_encoded_color_) setup.Warn("data_param.force_encoded_color", "force_encoded_color" + raw);
  if (force_color_ && first.image.channels != 3) setup.Warn("transform_param.force_color", "force_color" + raw);
  const bool idle_gray = transform().force_gray() && first.image.channels != 1;
  if (idle_gray) setup.Warn("transform_param.force_gray", "force_gray" + raw);
  return first.item;
}

void DatabaseSource::CheckOrder(LayerSetup& setup, const RecordSource& database) const {
  if (fields().shuffle_buffer > 0 && fields().balance_classes) {
    setup.Fail("data_param.balance_classes",
               "draws each record by itself, which shuffle_buffer is to avoid: remove one of the two");
  }
  if (fields().shuffle_buffer > 0 && !fields().shuffle) {
    setup.Warn("data_param.shuffle_buffer", "shuffle_buffer has no effect without shuffle: true");
  }
  if (!fields().shuffle || fields().shuffle_buffer > 0) return;
  const uint64_t bytes = database.bytes(), memory = MachineMemory();
  if (bytes <= memory) return;
  setup.Warn("data_param.shuffle",
             "\"" + fields().source + "\" takes " + FormatBytes(bytes) + " and memory has " + FormatBytes(memory) +
                 ", so that the disk looks for every record anew, which rotating ones do slowly; with " +
                 "shuffle_buffer: " + std::to_string(SuggestShuffleBuffer(database.count(), bytes, memory)) +
                 " it reads runs of neighbours in a random order");
}

}  // namespace crema
