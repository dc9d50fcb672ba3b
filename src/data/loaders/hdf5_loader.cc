#include "data/loaders/hdf5_loader.h"

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/hdf5.h"
#include "crema/error.h"

namespace crema {

namespace {

int64_t ValuesOfRow(const Hdf5Files& files) {
  int64_t values = 0;
  for (const Shape& row : files.row_shapes) values += row.count();
  return values;
}

}  // namespace

Hdf5Loader::Hdf5Loader(Hdf5Files files, const SampleOrder& order)
    : files_(std::move(files)), order_(files_.rows, order), item_shape_{ValuesOfRow(files_)} {}

void Hdf5Loader::Load(uint64_t position, float* data, float*, ItemScratch& scratch) const {
  const FileOrder::Place place = order_.At(position);
  auto content = static_cast<const Content*>(scratch.kept.get());
  if (!content || content->file != place.file) {
    scratch.kept.reset();
    scratch.kept = ContentOf(place.file);
    content = static_cast<const Content*>(scratch.kept.get());
  }
  for (size_t i = 0; i < files_.datasets.size(); ++i) {
    const auto width = static_cast<size_t>(files_.row_shapes[i].count());
    std::memcpy(data, content->values[i].data() + place.record * width, width * sizeof(float));
    data += width;
  }
}

std::string Hdf5Loader::Describe(uint64_t position) const {
  const FileOrder::Place place = order_.At(position);
  return "row " + std::to_string(place.record) + " of " + files_.paths[place.file];
}

std::shared_ptr<const Hdf5Loader::Content> Hdf5Loader::Find(size_t file) const {
  const std::lock_guard lock(mutex_);
  if (before_ && before_->file == file) std::swap(last_, before_);
  return last_ && last_->file == file ? last_ : nullptr;
}

std::shared_ptr<const Hdf5Loader::Content> Hdf5Loader::ContentOf(size_t file) const {
  if (auto found = Find(file)) return found;
  const std::lock_guard reading(reading_);
  // Another thread may have read it meanwhile.
  if (auto found = Find(file)) return found;
  {
    const std::lock_guard lock(mutex_);
    before_ = std::move(last_);
  }
  auto content = Read(file);
  const std::lock_guard lock(mutex_);
  last_ = content;
  return content;
}

std::shared_ptr<const Hdf5Loader::Content> Hdf5Loader::Read(size_t index) const {
  const std::string& path = files_.paths[index];
  const auto rows = static_cast<int64_t>(files_.rows[index]);
  const std::unique_ptr<Hdf5File> file = OpenHdf5(path);
  auto content = std::make_shared<Content>();
  content->file = index;
  try {
    for (size_t i = 0; i < files_.datasets.size(); ++i) {
      std::vector<int64_t> expected = files_.row_shapes[i].dims();
      expected.insert(expected.begin(), rows);
      if (file->Extents(files_.datasets[i]) != expected) {
        throw UserError({path}, "dataset \"" + files_.datasets[i] + "\" is no longer " + Shape(expected).ToString() +
                                    ": the file was changed while it was in use; start again");
      }
      content->values.emplace_back(static_cast<size_t>(Shape(expected).count()));
      file->Read(files_.datasets[i], content->values.back().data());
    }
  } catch (const std::bad_alloc&) {
    throw EnvironmentError("not enough memory to hold the " + std::to_string(rows * item_shape_.count() / (1 << 18)) +
                           " MiB of " + path + "; split it into several files: two are in memory at a time");
  } catch (const std::length_error&) {
    throw EnvironmentError(path + " has more values than any memory holds; is it damaged?");
  }
  return content;
}

}  // namespace crema
