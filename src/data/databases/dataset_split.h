// Dividing a data set into parts: train and val.
#ifndef CREMA_DATA_DATABASES_DATASET_SPLIT_H_
#define CREMA_DATA_DATABASES_DATASET_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace crema {

struct DatasetPart {
  std::string name;
  double share = 1;
};

// Of "train:0.9,val:0.1"; one part without a name, everything, of "". Throws UserError where names repeat or shares do
// not add up to 1.
std::vector<DatasetPart> ParseSplit(const std::string& text);

// How many of `count` go to each part: the shares rounded, but at least 1 to each where there are enough.
std::vector<int64_t> PartSizes(int64_t count, const std::vector<DatasetPart>& parts);

// The part of each record, so that every class is divided alike; which ones go where follows from the seed.
std::vector<int> SplitByClass(const std::vector<int>& labels, const std::vector<DatasetPart>& parts, uint64_t seed);

// The part of each of `count` records where each part is a stretch of them, in the order of the split.
std::vector<int> SplitInOrder(size_t count, const std::vector<DatasetPart>& parts);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_DATASET_SPLIT_H_
