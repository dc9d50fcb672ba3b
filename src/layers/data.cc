// Data: batches of images and labels from a database (BVLC Caffe's DataLayer).
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "crema/layer.h"
#include "data/datum_loader.h"
#include "data/prefetcher.h"
#include "data/record_source.h"

namespace crema {

namespace {

constexpr uint32_t kMaxThreads = 256, kMaxPrefetch = 4096;

// Names the random numbers of a layer: by its name, so that they stay the same when layers are added around it.
uint32_t DrawerOf(const std::string& name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ (hash >> 22)) & ((1u << 22) - 1);
}

void Copy(const float* from, const Tensor& top) {
  ParallelFor(top.count(), 1 << 17, [&](int64_t begin, int64_t end) {
    std::memcpy(top.f32() + begin, from + begin, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

class DataLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0);
    setup.ExpectTops(1, 2);
    setup.MakeSource();
    phase_ = setup.phase();
    name_ = setup.param().name();
    param_ = setup.param().data_param();
    transform_ = setup.param().transform_param();
    CheckFields(setup);
    source_ = setup.ResolvePath(param_.source());
    mean_file_ = setup.ResolvePath(transform_.mean_file());
    source_place_ = setup.where("data_param.source");

    const Shape data = DataShape(setup);
    const Shape label = setup.tops() > 1 && setup.shape_override(1) ? *setup.shape_override(1) : Shape{data[0]};
    if (label.count() != data[0]) {
      setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + label.ToString() + ": a batch has " +
                            std::to_string(data[0]) + " labels");
    }
    setup.SetTop(0, data);
    if (setup.tops() > 1) setup.SetTop(1, label);
    batch_ = static_cast<uint64_t>(data[0]);
  }

  void Forward(const LayerRun& run) override {
    try {
      if (!prefetcher_) Start(run);
      if (!run.replay || !prefetcher_->current().data) prefetcher_->Next();
    } catch (const UserError& error) {
      throw UserError(source_place_, "layer \"" + name_ + "\" (Data): " + error.diagnostics().front().message);
    }
    Copy(prefetcher_->current().data, run.tops[0]);
    if (run.tops.size() > 1) Copy(prefetcher_->current().labels, run.tops[1]);
  }

  uint64_t position() const override { return prefetcher_ ? prefetcher_->position() : start_; }

  void set_position(uint64_t records) override {
    start_ = records;
    if (prefetcher_) prefetcher_->Seek(records);
  }

  void ReadBatches(const BatchSchedule& schedule) override {
    start_ = schedule.first * batch_;
    schedule_ = {0, schedule.run, schedule.stride};
    if (prefetcher_) prefetcher_->Follow(schedule);
  }

  uint64_t next_batch() const override { return (position() + batch_ - 1) / batch_; }

  std::string DescribeItem(int64_t index) const override {
    if (!prefetcher_ || !prefetcher_->current().data) return {};
    return prefetcher_->loader().Describe(prefetcher_->current().first + static_cast<uint64_t>(index));
  }

 private:
  void CheckFields(LayerSetup& setup) const {
    if (param_.source().empty()) {
      setup.Fail("data_param", "does not say where the data is; add data_param { source: \"folder of an LMDB\" }");
    }
    if (param_.batch_size() == 0) {
      setup.Fail("data_param.batch_size", "batch_size must be at least 1; add it to data_param");
    }
    if (param_.prefetch() == 0 || param_.prefetch() > kMaxPrefetch) {
      setup.Fail("data_param.prefetch", "prefetch is " + std::to_string(param_.prefetch()) + "; it must be from 1 to " +
                                            std::to_string(kMaxPrefetch) + " batches made ahead");
    }
    if (param_.threads() == 0 || param_.threads() > kMaxThreads) {
      setup.Fail("data_param.threads", "threads is " + std::to_string(param_.threads()) + "; it must be from 1 to " +
                                           std::to_string(kMaxThreads));
    }
    if (transform_.has_mean_file() && transform_.mean_value_size() > 0) {
      setup.Fail("transform_param.mean_file", "mean_file and mean_value are both set; keep the one to subtract");
    }
    if (transform_.force_color() && transform_.force_gray()) {
      setup.Fail("transform_param.force_gray", "force_color and force_gray are both set; keep one");
    }
    if (param_.force_encoded_color()) {
      setup.Warn("data_param.force_encoded_color",
                 "force_encoded_color has no effect: it acts on compressed images, which are not read");
    }
    if (param_.has_backend() && param_.backend() == DataParameter::LEVELDB) {
      setup.Warn("data_param.backend", "LevelDB is not read, only LMDB; convert the database and set backend: LMDB");
    }
  }

  Shape DataShape(LayerSetup& setup) const {
    if (const Shape* shape = setup.shape_override(0)) {
      if (shape->axes() != 4 || shape->count() < 1) {
        setup.Fail("top", "the shape given for \"" + setup.param().top(0) + "\" is " + shape->ToString() +
                              "; expected N,C,H,W, each at least 1");
      }
      return *shape;
    }
    if (RecordSourceExists(source_)) return SourceShape(setup);
    if (transform_.crop_size() > 0) return CropShape(setup);
    setup.Fail("data_param.source", "cannot tell the shape of \"" + setup.param().top(0) + "\": database \"" +
                                        param_.source() +
                                        "\" does not exist here, and no crop_size fixes it; make the " +
                                        "database, correct the path, or pass --shape=" + setup.param().top(0) + "=" +
                                        std::to_string(param_.batch_size()) + ",C,H,W");
  }

  Shape SourceShape(LayerSetup& setup) const {
    const char* field = "transform_param.mean_file";
    ImageSize size;
    try {
      const Transform transform(transform_, phase_, mean_file_);
      field = "data_param.source";
      size = FirstOutputSize(*OpenRecordSource(source_), transform);
    } catch (const UserError& error) {
      setup.Fail(field, error.diagnostics().front().message);
    }
    const int forced = transform_.force_color() ? 3 : transform_.force_gray() ? 1 : size.channels;
    if (forced != size.channels) {
      setup.Warn(transform_.force_color() ? "transform_param.force_color" : "transform_param.force_gray",
                 "has no effect: it acts on compressed images only, and the records of \"" + param_.source() +
                     "\" hold raw values of " + std::to_string(size.channels) + " channel(s)");
    }
    return Shape{param_.batch_size(), size.channels, size.height, size.width};
  }

  Shape CropShape(LayerSetup& setup) const {
    int64_t channels = 3;
    if (transform_.mean_value_size() > 1) {
      channels = transform_.mean_value_size();
    } else if (transform_.force_gray()) {
      channels = 1;
    } else if (!transform_.force_color()) {
      setup.Warn("data_param.source", "database \"" + param_.source() +
                                          "\" does not exist here; 3 channels are assumed " + "for \"" +
                                          setup.param().top(0) + "\" (--shape says otherwise)");
    }
    return Shape{param_.batch_size(), channels, transform_.crop_size(), transform_.crop_size()};
  }

  void Start(const LayerRun& run) {
    SampleOrder order;
    order.seed = run.context->seed;
    order.drawer = DrawerOf(name_);
    order.shuffle = param_.shuffle();
    order.DrawSkip(param_.rand_skip());
    const Shape& top = run.tops[0].shape();
    auto loader =
        std::make_shared<DatumLoader>(OpenRecordSource(source_), Transform(transform_, phase_, mean_file_), order);
    const Shape wanted{top[1], top[2], top[3]};
    if (loader->item_shape() != wanted) {
      throw UserError("the net was compiled for images of " + wanted.ToString() + ", but those of \"" + source_ +
                      "\" are " + loader->item_shape().ToString() +
                      " (channels x height x width); correct --shape or crop_size");
    }
    PrefetchOptions options;
    options.batch = top[0];
    options.ahead = static_cast<int>(param_.prefetch());
    options.threads = run.context->data_threads > 0 ? run.context->data_threads : static_cast<int>(param_.threads());
    options.start = start_;
    // Ranks take turns.
    const auto rank = static_cast<uint64_t>(run.context->rank), ranks = static_cast<uint64_t>(run.context->ranks);
    options.schedule = schedule_.value_or(BatchSchedule{rank, 1, ranks});
    prefetcher_.emplace(std::move(loader), options);
  }

  Phase phase_ = TRAIN;
  std::string name_, source_, mean_file_;
  DataParameter param_;
  TransformationParameter transform_;
  Location source_place_;
  uint64_t batch_ = 1;  // records
  uint64_t start_ = 0;  // what was said before the first Forward; then also the schedule
  std::optional<BatchSchedule> schedule_;
  std::optional<Prefetcher> prefetcher_;
};

}  // namespace

REGISTER_LAYER(Data, DataLayer, "data_param", "transform_param");

}  // namespace crema
