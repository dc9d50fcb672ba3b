// HDF5Output: writes two blobs to an .h5 file, as datasets "data" and "label" (BVLC Caffe's HDF5OutputLayer). Where
// Caffe's layer stops at the second pass, the rows of all passes follow each other in the file.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/hdf5.h"
#include "base/paths.h"
#include "crema/layer.h"

namespace crema {

namespace {

constexpr char kField[] = "hdf5_output_param.file_name";

// Caffe's blobs have four axes there, of which those that are missing are 1.
std::vector<int64_t> ExtentsOf(const Shape& shape) {
  std::vector<int64_t> extents = shape.dims();
  if (extents.size() < 4) extents.resize(4, 1);
  return extents;
}

class Hdf5OutputLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(0);
    setup.MakeNonDifferentiable();
    name_ = setup.param().name();
    place_ = setup.where("type");
    file_ = setup.param().hdf5_output_param().file_name();
    CheckFile(setup);
    setup.SetFileWritten({kField, file_});
    for (int i = 0; i < 2; ++i) extents_.push_back(ExtentsOf(setup.bottom_shape(i)));
    if (extents_[0][0] != extents_[1][0]) {
      setup.Fail("bottom", setup.BottomIs(1) + " beside \"" + setup.param().bottom(0) + "\" of " +
                               setup.bottom_shape(0).ToString() +
                               ": both must have the same number of rows, the first extent");
    }
  }

  void Plan(LayerPlan& plan) override {
    if (plan.context().ranks == 1) return;
    throw UserError(place_,
                    "layer \"" + name_ + "\" (HDF5Output) writes what one net makes, but " +
                        std::to_string(plan.context().ranks) +
                        " train at once; leave it out of TRAIN (include { phase: TEST }), or train on one device");
  }

  // On the host, also where the net is on a GPU (graph/boundary_types.h).
  void Forward(const LayerRun& run) override {
    if (run.replay) return;  // it has been written
    if (!writer_) Open();
    writer_->Append("data", extents_[0], run.bottoms[0].f32());
    writer_->Append("label", extents_[1], run.bottoms[1].f32());
    writer_->Flush();
  }

 private:
  void Open() {
    try {
      writer_ = CreateHdf5(file_);
    } catch (const EnvironmentError& error) {
      const std::string message = error.what();
      const bool shared = message.find("has it open") != std::string::npos;
      throw EnvironmentError(
          place_.ToString() + ": layer \"" + name_ + "\" (HDF5Output): " + message +
          (shared ? "; where a net has it in TRAIN and in TEST, let one of them write it (include { phase: TEST })"
                  : ""));
    }
  }

  // Better now than when the first batch was computed.
  void CheckFile(LayerSetup& setup) const {
    if (file_.empty()) {
      setup.Fail("hdf5_output_param", "does not say where to write; add hdf5_output_param { file_name: \"x.h5\" }");
    }
    std::error_code ignored;
    if (std::filesystem::is_directory(file_, ignored)) {
      setup.Fail(kField, "\"" + file_ + "\" is a folder; add the name of a file in it");
    }
    const std::string folder = DirectoryOf(file_);
    if (!std::filesystem::is_directory(folder, ignored)) {
      setup.Fail(kField, "there is no folder \"" + folder + "\" to write \"" + file_ + "\" in; make it");
    }
    if (access(folder.c_str(), W_OK | X_OK) != 0 && access(file_.c_str(), W_OK) != 0) {
      setup.Fail(kField, "nothing can be written into the folder \"" + folder + "\"; name another one");
    }
    if (std::filesystem::exists(file_, ignored)) {
      if (!IsOutput()) {
        setup.Fail(kField,
                   "\"" + file_ +
                       "\" is there, and was not written by such a layer; remove it if it is not needed, or name "
                       "another file");
      }
      if (std::filesystem::file_size(file_, ignored) == 0) return;
      setup.Warn(kField, "\"" + file_ +
                             "\" holds what an earlier run wrote, and the first pass of this one replaces it; to keep "
                             "it, move it away");
    }
  }

  // Whether the file is what an earlier run has written: that is written over.
  bool IsOutput() const {
    std::error_code ignored;
    if (std::filesystem::file_size(file_, ignored) == 0 && !ignored) return true;
    try {
      const std::unique_ptr<Hdf5File> file = OpenHdf5(file_);
      const Hdf5File::Names names = file->List("/");
      return names.groups.empty() && names.datasets == std::vector<std::string>{"data", "label"} &&
             file->Grows("data") && file->Grows("label");
    } catch (const UserError&) {
      return false;
    }
  }

  std::string name_, file_;
  Location place_;
  std::vector<std::vector<int64_t>> extents_;  // of each bottom, in the file
  std::unique_ptr<Hdf5Writer> writer_;         // made by the first pass, so that a net that is never run writes nothing
};

}  // namespace

REGISTER_LAYER(HDF5Output, Hdf5OutputLayer, "hdf5_output_param");

}  // namespace crema
