// Charts into files: CSV of what is shown, SVG and PNG. A panel names its charts (Panel::charts); a dialog asks which, as
// what and where; the files are written by a thread of their own, and a toast tells where they are or why not.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/figure/figure.h"
#include "app/studio/parts/file_writer.h"
#include "app/studio/parts/painting.h"

namespace comera::studio {

struct UiState;

struct Chart {
  std::string name, title;           // name: of its file
  std::function<std::string()> csv;  // called on another thread: owns all it needs
  Drawing drawing;
};
// A chart that a panel has, before it is drawn: a list of titles costs no drawing.
struct ListedChart {
  std::string name, title;
  std::function<Chart()> draw;  // on the thread that draws, in the frame in which it was listed
};
std::vector<Chart> drawn(const std::vector<ListedChart>& charts);
// Of a figure, in the size that a page has room for.
Chart chart_of(std::string name, Figure figure);
// A table as a chart: rows of cells, the first row is its head. The first column is as wide as its words.
struct TableLook {
  std::vector<Color> marks = {};  // in front of rows, as on the screen; 0 = none. The head is the first of them
  float above = 0;                // room for something between the note and the head
};
Chart table_chart(std::string name, const std::string& title, const std::string& note, std::vector<std::vector<std::string>> rows,
                  const TableLook& look = {});
// Begins the drawing of a chart: background, title, note; below kBelowNote there is room.
Drawing begin_drawing(Point size, const std::string& title, const std::string& note);
inline constexpr float kBelowNote = 56;
// A drawing on a page of its own, under a title.
Drawing on_page(Drawing drawing, const std::string& title, const std::string& note);
inline constexpr float kChartText = 12, kCharWidth = kChartText * 0.56f;  // of texts that are no titles
std::string cut_words(const std::string& text, float room);               // as much of it as there is room for

struct Exports {
  bool open = false;                // the dialog
  std::string panel;                // whose charts
  std::vector<std::string> titles;  // of its charts
  int chart = 0;                    // of those; as many as there are = all
  bool csv = true, svg = true, png = false;
  int png_scale = 2;
  std::string folder;
  bool can_read_pixels = false;        // there is a window
  int screenshot_in = 0;               // frames till a picture of the whole window is taken; 0 = none is wanted
  std::shared_ptr<FileWriter> writer;  // from the first export on
  bool busy() const { return screenshot_in > 0 || (writer && writer->busy()); }
};

// Opens the dialog for a panel's charts, or says why there is nothing to export.
void open_export(UiState& ui, const std::string& panel);
// The same for the panel in front.
void export_front(UiState& ui);
// What the dialog's button does.
void export_charts(UiState& ui);
// The sign "..." at the right end of the line, for panels that have charts. Leaves the cursor behind it.
void export_button(UiState& ui, const char* panel);
float export_button_width();
// Where exports go unless another folder was named.
std::string exports_folder(const Exports& exports);
// The dialog; once a frame.
void draw_export(UiState& ui);
// Takes the results of the writer into toasts. Once a frame, also while nothing is drawn.
void tick_exports(UiState& ui);

}  // namespace comera::studio
