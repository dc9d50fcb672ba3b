// HDF5Data: batches of rows of the datasets in HDF5 files that a list names (BVLC Caffe's HDF5DataLayer).
#include <cstring>
#include <memory>
#include <utility>

#include "base/parallel.h"
#include "data/loaders/hdf5_loader.h"
#include "layers/item_source.h"

namespace crema {

namespace {

class Hdf5DataLayer : public ItemSource {
 private:
  Fields ReadFields(const LayerParameter& layer) override {
    const HDF5DataParameter& param = layer.hdf5_data_param();
    Fields fields;
    fields.block = "hdf5_data_param";
    fields.source = param.source();
    fields.batch_size = param.batch_size();
    fields.shuffle = param.shuffle();
    fields.threads_help = false;
    return fields;
  }

  void CheckFields(LayerSetup& setup) override {
    setup.ExpectTops(1, -1);
    if (setup.param().has_transform_param()) {
      setup.Fail("transform_param",
                 "HDF5Data delivers the values as they are and takes no transform_param; write the files as the net "
                 "wants them, or scale within the net (layer Scale)");
    }
  }

  const char* example_of_source() const override { return "file with the path of one .h5 file per line"; }

  std::vector<Shape> TopShapes(LayerSetup& setup) override {
    bool all_given = true;
    for (int i = 0; i < setup.tops(); ++i) {
      names_.push_back(setup.param().top(i));
      all_given = all_given && setup.shape_override(i);
    }
    if (!all_given) Look(setup);
    std::vector<Shape> shapes;
    for (int i = 0; i < setup.tops(); ++i) {
      const Shape* given = setup.shape_override(i);
      shapes.push_back(given ? *given : ShapeInFiles(i));
      if (shapes[i].axes() < 1 || shapes[i].count() < 1) {
        setup.Fail("top", "the shape given for \"" + names_[i] + "\" is " + shapes[i].ToString() +
                              "; expected rows along the first axis, and every extent at least 1");
      }
      if (shapes[i][0] != shapes[0][0]) {
        setup.Fail("top", "\"" + names_[i] + "\" cannot be " + shapes[i].ToString() + " beside \"" + names_[0] +
                              "\" of " + shapes[0].ToString() + ": a batch has as many rows of each");
      }
      row_shapes_.emplace_back(std::vector<int64_t>(shapes[i].dims().begin() + 1, shapes[i].dims().end()));
    }
    return shapes;
  }

  void Look(LayerSetup& setup) {
    if (!SourceExists()) {
      std::string shapes;
      for (const std::string& name : names_) {
        shapes += " --shape=" + name + "=" + std::to_string(fields().batch_size) + ",...";
      }
      setup.Fail(Field("source"), "cannot tell the shapes of the tops: list \"" + fields().source +
                                      "\" does not exist here; make the list, correct the path, or pass" + shapes);
    }
    try {
      files_ = LookAtHdf5Files(source(), names_);
      setup.SetFilesRead(files_.paths);
    } catch (const UserError& error) {
      const Diagnostic& first = error.diagnostics().front();
      // Mistakes within the list have their lines there.
      if (first.where.line > 0) throw;
      setup.Fail(Field("source"), (first.where.file.empty() ? "" : first.where.ToString() + " ") + first.message);
    }
  }

  Shape ShapeInFiles(int top) const {
    std::vector<int64_t> dims = files_.row_shapes[top].dims();
    dims.insert(dims.begin(), fields().batch_size);
    return Shape(std::move(dims));
  }

  std::shared_ptr<const ItemLoader> MakeLoader(const SampleOrder& order) const override {
    Hdf5Files files = files_.paths.empty() ? LookAtHdf5Files(source(), names_) : files_;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (files.row_shapes[i] == row_shapes_[i]) continue;
      throw UserError("the net was compiled for rows of " + row_shapes_[i].ToString() + " in \"" + names_[i] +
                      "\", but those of \"" + source() + "\" are " + files.row_shapes[i].ToString() +
                      "; correct --shape");
    }
    return std::make_shared<Hdf5Loader>(std::move(files), order);
  }

  // An item holds its rows of all tops, one behind the other.
  void Deliver(const Batch& batch, std::span<const Tensor> tops) const override {
    if (tops.size() == 1) return CopyValues(batch.data, tops[0].count(), tops[0].f32());
    const int64_t item = loader()->item_shape().count();
    ParallelFor(tops[0].shape()[0], std::max<int64_t>(1, (1 << 17) / item), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* from = batch.data + i * item;
        for (const Tensor& top : tops) {
          const int64_t width = top.count() / top.shape()[0];
          std::memcpy(top.f32() + i * width, from, static_cast<size_t>(width) * sizeof(float));
          from += width;
        }
      }
    });
  }

  std::string Remedy(int) const override {
    return "reading the files takes long: store 32-bit floats without compression, in files of a few thousand rows";
  }

  std::vector<std::string> names_;  // of the tops, and so of the datasets
  std::vector<Shape> row_shapes_;
  Hdf5Files files_;  // where Setup has looked
};

}  // namespace

REGISTER_LAYER(HDF5Data, Hdf5DataLayer, "hdf5_data_param");

}  // namespace crema
