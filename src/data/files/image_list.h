// Which images there are, and of which class each is, or which numbers belong to it.
#ifndef CREMA_DATA_FILES_IMAGE_LIST_H_
#define CREMA_DATA_FILES_IMAGE_LIST_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "crema/data.pb.h"

namespace crema {

struct ImageList {
  struct Entry {
    std::string path;  // as the list has it, or below the folder
    int label = 0;     // the class, from 0; below 0 of what is not to count (ignore_label: -1)
    int line = 0;      // of the list, from 1
    int number = 0;    // of a list of videos, else 0
  };

  std::string file;  // the list; empty for folders
  std::string root;  // put before the paths to open them; ends with "/" where it is not empty
  std::vector<Entry> entries;
  std::vector<std::string> labels;  // names of the classes; empty for list files, which have none
  size_t label_count = 0;           // numbers of an entry; 0: entries are of classes
  std::vector<float> numbers;       // those of entry 0, of entry 1, ...
  bool may_have_numbers = false;    // label_count is known where this comes from

  std::string PathOf(size_t i) const { return root + entries[i].path; }
  // For messages: the path in quotes and where the list has it, as in "photos/a.png" (train.txt:12).
  std::string Named(size_t i) const;
  // " (train.txt:12)"; nothing without a list.
  std::string PlaceOf(size_t i) const;
  std::span<const float> NumbersOf(size_t i) const { return {numbers.data() + i * label_count, label_count}; }
};

// Most numbers of an entry.
constexpr size_t kMaxLabelCount = 1 << 16;

// Caffe's list file: one "path label" per line, the label after the last blank, a path may hold blanks; empty lines are
// skipped. With `label_count` the last so many words of each line are finite numbers. Throws UserError with every line
// that is not so (the first 20), EnvironmentError where it cannot be read.
ImageList ReadImageList(const std::string& file, const std::string& root, size_t label_count = 0);

// What lines of a list of videos are.
struct VideoListForm {
  std::string number;                              // what the number is: "number_of_frames"
  size_t label_count = 0;                          // above 0: a line has several classes below this
  std::function<std::string(int number)> problem;  // what is wrong with a number, with the remedy; empty: nothing
};

// The list file of VideoData: one "folder number label" per line, cut at the last two blanks. With label_count the
// label is a list of classes, "3,17", and entries have as many numbers, 1 for these and 0 else; their label is the
// first class of the line. Throws as ReadImageList does.
ImageList ReadVideoList(const std::string& file, const std::string& root, const VideoListForm& form);

// For messages on an image that does not exist: what may be the mistake where its path ends in a number, else nothing.
std::string LabelCountHint(const ImageList& list, size_t entry);

// Images and the files that say what is on them.
struct AnnotatedImageList {
  ImageList images;                      // without labels
  std::vector<std::string> annotations;  // of each image; paths to open
};

// The list file of SSD's convert_annoset: one "image annotation" per line, both below `root`, cut at the last blank.
// Throws as ReadImageList does.
AnnotatedImageList ReadAnnotatedImageList(const std::string& file, const std::string& root);

// Darknet's list file: one path of an image per line, below `root`. Its objects are in the file of that name with .txt
// in the folder "labels" beside its last folder that is called "images" or "JPEGImages", or, where that does not exist,
// beside the image. Throws as ReadImageList does.
AnnotatedImageList ReadYoloImageList(const std::string& file, const std::string& root);

// Images and, of each, the image that holds the class of every pixel.
struct DenseImageList {
  ImageList images, labels;  // with as many entries, without labels
};

// The list file of DenseImageData: one "image label_image" per line, as that of ReadAnnotatedImageList.
DenseImageList ReadDenseImageList(const std::string& file, const std::string& root);

// The list file of ImageSegData, as `type` says: one "image label_image" per line; "image label", as ReadImageList's,
// with labels up to 255, or an image alone, the whole line, whose label is `label_of_none`: `labels` are empty then.
DenseImageList ReadImageSegList(const std::string& file, const std::string& root, ImageDataParameter::LabelType type,
                                int label_of_none);

// "labels.txt": one name per line, in the order of the labels; a line of one blank is that name, and empty ones may
// only end the file.
std::vector<std::string> ReadLabels(const std::string& file);
// The same of lines that were read of the file before: a pipe can be read once.
std::vector<std::string> LabelsOf(std::vector<std::string> lines, const std::string& file);

}  // namespace crema

#endif  // CREMA_DATA_FILES_IMAGE_LIST_H_
