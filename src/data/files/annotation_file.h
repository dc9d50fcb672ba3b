// Files that say which objects an image shows.
#ifndef CREMA_DATA_FILES_ANNOTATION_FILE_H_
#define CREMA_DATA_FILES_ANNOTATION_FILE_H_

#include <string>
#include <vector>

#include "data/files/label_map.h"
#include "image/resize.h"

namespace crema {

// As a file has it: corners in pixels, counted as the file counts them, or in shares of the image.
struct AnnotatedObject {
  int label = 0;
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  bool difficult = false;
  int line = 0;      // of the file, from 1
  std::string name;  // of the class, where the file has one
};

struct AnnotationFile {
  std::string path;
  ImageExtent image;       // that the corners are of, as the file says; zeros where it does not
  bool in_shares = false;  // corners, of the image
  std::vector<AnnotatedObject> objects;
};

// The XML of PASCAL VOC (http://host.robots.ox.ac.uk/pascal/VOC/): of <annotation> the <size>, and of each <object>
// <name>, <difficult> and <bndbox>. Corners may be fractions, as some programs write them. Throws UserError, with the
// line, where the file is absent or no such XML, an object lacks its name or a corner, or the map lacks a name;
// EnvironmentError where it cannot be read.
AnnotationFile ReadVocAnnotation(const std::string& path, const LabelMapFile& labels);

// SSD's text: "label xmin ymin xmax ymax" per line, labels from 1 on. Throws as the other does.
AnnotationFile ReadTextAnnotation(const std::string& path);

// Darknet's text, known as YOLO's: "class x y width height" per line, classes from 0, which become labels from 1;
// middle and extents of the box are shares of the image. Throws as the others do.
AnnotationFile ReadYoloAnnotation(const std::string& path);

}  // namespace crema

#endif  // CREMA_DATA_FILES_ANNOTATION_FILE_H_
