// Tables of features and labels as text: which columns are what, and of which class each row is.
#ifndef CREMA_DATA_FILES_CSV_TABLE_H_
#define CREMA_DATA_FILES_CSV_TABLE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace crema {

struct CsvForm {
  // kDetect: the first row is one where a feature in it is no number.
  enum class Header { kDetect, kYes, kNo };

  std::string file;  // plain or .gz
  Header header = Header::kDetect;
  bool labelled = true;      // else all columns are features
  std::string label_column;  // name, or number from 0; the last one where it is empty
  // Likewise, columns with the several labels of a row, which are numbers. Not together with the former.
  std::vector<std::string> label_columns;
  std::vector<std::string> skip_columns;  // likewise, neither features nor labels
  // Likewise, a column of texts, which then is all that is read beside the labels; with it, and no column by its name,
  // `header` must say what the first row is.
  std::string text_column;
  // The names of the classes in the order of their numbers, and where they are from; empty: those that rows have.
  std::vector<std::string> classes;
  std::string classes_file;
};

// What one reading of the file finds.
struct CsvTable {
  std::vector<std::string> names;  // of the columns, where there is a header
  bool header = false;
  bool bytes = true;       // all features are whole numbers from 0 to 255
  bool of_classes = true;  // else rows have several labels, or none
  size_t columns = 0;
  std::vector<size_t> labels;    // their columns: that of the class, or those of several labels
  std::vector<size_t> features;  // likewise, or that of the text
  size_t rows = 0;
  std::vector<int> row_classes;          // of each row, where rows have one
  std::vector<std::string> class_names;  // empty where classes are numbers

  std::string NameOf(size_t column) const;
};

// Labels are whole numbers from 0, or names, which are numbered in the order of their bytes, or as the form says. Every
// value is looked at; `visit_text` is told each text. Throws UserError with line and column of what is wrong,
// EnvironmentError where the file cannot be read.
CsvTable ReadCsvTable(const CsvForm& form, const std::function<void(const std::string& text)>& visit_text = {});

}  // namespace crema

#endif  // CREMA_DATA_FILES_CSV_TABLE_H_
