// The numbers that a net makes of each record, as they lie in its blobs after a pass.
#ifndef CREMA_INFERENCE_FEATURE_READER_H_
#define CREMA_INFERENCE_FEATURE_READER_H_

#include <cstdint>
#include <vector>

#include "crema/net.h"
#include "inference/feature_writer.h"

namespace crema {

// Used by the thread that runs the net, which must outlive it.
class FeatureReader {
 public:
  // `options`: those that the net was made with. Its outputs are read in that order; where there are none the net's
  // only one. `batch`: records of a pass; 0: as many as the first blob has rows. `views`: rows of each record, which
  // are averaged. Throws UserError where there is no such output, or several, or where a blob has no row for each
  // record.
  FeatureReader(const Net& net, const NetOptions& options, int64_t batch, int views = 1);

  const std::vector<FeatureBlob>& blobs() const { return blobs_; }
  int64_t batch() const { return batch_; }
  // Of each blob what the last pass made of record `row` of the batch. Valid until the next call or pass.
  const std::vector<const float*>& Row(int64_t row);

 private:
  std::vector<FeatureBlob> blobs_;
  std::vector<Tensor> values_;
  int64_t batch_;
  int views_;
  std::vector<std::vector<float>> means_;
  std::vector<const float*> row_;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_FEATURE_READER_H_
