#include "data/databases/image_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "data/databases/record_image.h"
#include "data/loaders/ordered_work.h"

namespace crema {

namespace {

constexpr int64_t kChunk = 64;  // records

// Sums over some records. Doubles hold sums of bytes, and of their squares, exactly up to 2^53.
struct Sums {
  int64_t records = 0, pixels = 0, bytes = 0;
  ImageSize size;
  bool same_size = true;
  std::vector<double> values;             // of each place of an image; of no use unless same_size
  std::vector<double> channels, squares;  // of each channel
  uint64_t broken = 0;
  std::string problem;  // of record `broken`

  void Clear() {
    records = pixels = bytes = 0;
    same_size = true;
    problem.clear();
  }
  void Begin(const ImageSize& first) {
    size = first;
    values.assign(static_cast<size_t>(first.count()), 0);
    channels.assign(static_cast<size_t>(first.channels), 0);
    squares.assign(static_cast<size_t>(first.channels), 0);
  }
};

std::string OtherChannels(const ImageSize& size, const ImageSize& first) {
  return "has " + std::to_string(size.channels) + " channel(s), but the first image has " +
         std::to_string(first.channels) + "; convert the images again, all in colour or all with --gray";
}

// Of the distances from `origin`.
template <typename Wide, typename Value>
void AddChannel(const Value* values, int64_t count, Wide origin, double* channel, double* channel_squares) {
  Wide sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Wide value = values[i] - origin;
    sum += value;
    squares += value * value;
  }
  *channel += static_cast<double>(sum);
  *channel_squares += static_cast<double>(squares);
}

template <typename Value>
void AddValues(const Value* values, const ImageSize& size, const std::vector<double>& origins, Sums* sums) {
  const int64_t plane = int64_t{size.height} * size.width;
  for (int c = 0; c < size.channels; ++c, values += plane) {
    const auto channel = static_cast<size_t>(c);
    double *const sum = &sums->channels[channel], *const squares = &sums->squares[channel];
    const double origin = channel < origins.size() ? origins[channel] : 0;
    // Integers, exact and fast, for bytes.
    using Wide = std::conditional_t<std::is_integral_v<Value>, uint64_t, double>;
    if (origin == 0) {
      AddChannel<Wide>(values, plane, 0, sum, squares);
    } else {
      AddChannel<double>(values, plane, origin, sum, squares);
    }
    if (!sums->same_size) continue;
    double* to = sums->values.data() + c * plane;
    for (int64_t i = 0; i < plane; ++i) to[i] += static_cast<double>(values[i]);
  }
}

// For each channel a value of it: squares of floats that are large, but close to each other, would leave nothing of
// their deviation. Nothing where the first record holds bytes, or is broken.
std::vector<double> OriginsOf(const RecordSource& source, RecordImage* image) {
  std::vector<double> origins;
  if (!ReadRecordImage(source.Read(0), image).empty() || !image->bytes.empty()) return origins;
  const int64_t plane = int64_t{image->size.height} * image->size.width;
  for (int c = 0; c < image->size.channels; ++c) origins.push_back(image->floats[static_cast<size_t>(c * plane)]);
  return origins;
}

void AddRecords(const RecordSource& source, uint64_t begin, uint64_t end, const std::vector<double>& origins,
                RecordImage* image, Sums* sums) {
  sums->Clear();
  for (uint64_t i = begin; i < end; ++i) {
    sums->problem = ReadRecordImage(source.Read(i), image);
    const ImageSize& size = image->size;
    if (sums->problem.empty() && sums->records > 0 && size.channels != sums->size.channels) {
      sums->problem = OtherChannels(size, sums->size);
    }
    if (!sums->problem.empty()) {
      sums->broken = i;
      return;
    }
    if (sums->records++ == 0) sums->Begin(size);
    sums->same_size &= size == sums->size;
    sums->pixels += int64_t{size.height} * size.width;
    sums->bytes += static_cast<int64_t>(image->datum.record.size());
    if (image->bytes.empty()) {
      AddValues(image->floats.data(), size, origins, sums);
    } else {
      AddValues(image->bytes.data(), size, origins, sums);
    }
  }
}

void Merge(const Sums& from, Sums* to) {
  if (to->records == 0) to->Begin(from.size);
  to->same_size &= from.same_size && from.size == to->size;
  to->records += from.records;
  to->pixels += from.pixels;
  const auto add = [](const std::vector<double>& more, std::vector<double>* sums) {
    for (size_t i = 0; i < sums->size(); ++i) (*sums)[i] += more[i];
  };
  if (to->same_size) add(from.values, &to->values);
  add(from.channels, &to->channels);
  add(from.squares, &to->squares);
}

}  // namespace

ImageStatistics ComputeImageStatistics(const RecordSource& source, int threads, ProgressLine* progress) {
  const auto count = static_cast<int64_t>(source.count());
  progress->SetTotal(count);
  threads = WorkThreads(threads);
  std::vector<RecordImage> images(static_cast<size_t>(threads));
  const std::vector<double> origins = OriginsOf(source, &images[0]);
  Sums total;
  WorkInOrder<Sums>(
      (count + kChunk - 1) / kChunk, threads,
      [&](int64_t i, int thread, Sums* sums) {
        AddRecords(source, static_cast<uint64_t>(i * kChunk), static_cast<uint64_t>(std::min(count, (i + 1) * kChunk)),
                   origins, &images[static_cast<size_t>(thread)], sums);
      },
      [&](int64_t, const Sums& sums) {
        if (!sums.problem.empty()) RejectRecord(source, sums.broken, sums.problem);
        if (total.records > 0 && sums.size.channels != total.size.channels) {
          RejectRecord(source, static_cast<uint64_t>(total.records), OtherChannels(sums.size, total.size));
        }
        Merge(sums, &total);
        progress->Add(sums.records, sums.bytes);
      });

  ImageStatistics statistics;
  statistics.records = total.records;
  statistics.size = total.size;
  statistics.same_size = total.same_size;
  if (total.same_size) {
    for (const double sum : total.values) {
      // Caffe divides in single precision, which such sums are too large for.
      const bool large = std::abs(sum) > std::numeric_limits<float>::max();
      statistics.mean.push_back(large ? static_cast<float>(sum / static_cast<double>(total.records))
                                      : static_cast<float>(sum) / static_cast<float>(total.records));
    }
  }
  const auto pixels = static_cast<double>(total.pixels);
  for (size_t c = 0; c < total.channels.size(); ++c) {
    const double mean = total.channels[c] / pixels;
    statistics.channel_means.push_back(mean + (c < origins.size() ? origins[c] : 0));
    statistics.channel_deviations.push_back(std::sqrt(std::max(0.0, total.squares[c] / pixels - mean * mean)));
  }
  return statistics;
}

}  // namespace crema
