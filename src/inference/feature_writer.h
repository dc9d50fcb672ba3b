// What a net makes of records (features, embeddings), written to a file: a row for each record.
#ifndef CREMA_INFERENCE_FEATURE_WRITER_H_
#define CREMA_INFERENCE_FEATURE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crema/tensor.h"

namespace crema {

struct FeatureTarget {
  // Its ending says the form. ".csv": a line for each record, "record,label,0,1,...", with numbers that read back
  // exactly; of several labels "record,label_0,label_1,...,0,1,...". ".h5", ".hdf5": a dataset for each blob, records x
  // the shape of a row; "label", where any is known, records or records x labels, which no blob may then be named, and
  // "record", the records' names as one text, a line each. "_lmdb", ".lmdb": a database of Datums with float_data, in
  // the order of the records. "/": a folder of label images (label_image_writer.h), beside others that are there.
  std::string path;
  bool replace = false;
  size_t labels = 0;                     // of each record, instead of a class
  bool keys = false;                     // records are named by keys of a database, not by paths
  std::vector<std::string> inputs = {};  // files that are read, which no label image replaces
};

// The class of a record, below 0 where it is not known; or FeatureTarget::labels numbers instead.
struct FeatureLabel {
  FeatureLabel(int64_t of_class) : number(of_class) {}
  FeatureLabel(std::span<const float> numbers) : several(numbers) {}

  int64_t number = -1;
  std::span<const float> several;
};

// A blob as one record has it.
struct FeatureBlob {
  std::string name;
  Shape shape;  // without the axis of the batch
  // Of a single channel that Sigmoid made, so that numbers from 0 to 1 are no classes.
  bool probabilities = false;
};

// Used by one thread.
class FeatureWriter {
 public:
  // Removes what was written, unless it was committed.
  virtual ~FeatureWriter() = default;

  // One record. A class that is not known is left empty by CSV, and written as -1 by the others. `rows`: of each blob
  // the numbers of the record. Throws UserError where the label would need the name of a blob.
  virtual void Put(const std::string& record, const FeatureLabel& label, const std::vector<const float*>& rows) = 0;
  // Finishes the file and gives it its name.
  virtual void Commit() = 0;
};

// Throws UserError where the path ends in no known form, exists and is not to be replaced, or where the form cannot
// hold that many blobs, or means of several views: what can be said before a net is made.
void CheckFeatureTarget(const FeatureTarget& target, size_t blobs, int views = 1);

// Checks as above, and the blobs' shapes and names, too. The writer throws EnvironmentError where the disk is full or
// cannot be written, or HDF5 is wanted and this crema has none.
std::unique_ptr<FeatureWriter> MakeFeatureWriter(const FeatureTarget& target, const std::vector<FeatureBlob>& blobs);

}  // namespace crema

#endif  // CREMA_INFERENCE_FEATURE_WRITER_H_
