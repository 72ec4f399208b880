// Exports charts to files: CSV of the shown data, SVG and PNG. A panel lists its charts (Panel::charts); a dialog asks for chart, formats
// and folder. A background thread writes the files, and a toast reports their paths or an error.
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
  std::string name, title;           // name: file name
  std::function<std::string()> csv;  // called on another thread: owns all its data
  Drawing drawing;
};
// A chart of a panel before it is drawn, so that a list of titles is cheap.
struct ListedChart {
  std::string name, title;
  std::function<Chart()> draw;  // call on the drawing thread, in the frame in which it was listed
};
std::vector<Chart> drawn(const std::vector<ListedChart>& charts);
// Chart of a figure, in the default size of a chart.
Chart chart_of(std::string name, Figure figure);
// A table as a chart. The first row is the header; the first column is as wide as its text.
struct TableLook {
  std::vector<Color> marks = {};  // per row, header included: colour of a mark before the row, as on the screen; 0 = none
  float above = 0;                // height left free between the note and the header
};
Chart table_chart(std::string name, const std::string& title, const std::string& note, std::vector<std::vector<std::string>> rows,
                  const TableLook& look = {});
// Begins a chart: background, title, note. Its content starts at kBelowNote.
Drawing begin_drawing(Point size, const std::string& title, const std::string& note);
inline constexpr float kBelowNote = 56;
// A drawing on a page of its own, below a title.
Drawing on_page(Drawing drawing, const std::string& title, const std::string& note);
inline constexpr float kChartText = 12, kCharWidth = kChartText * 0.56f;  // of texts other than titles
std::string cut_words(const std::string& text, float room);               // cut to the given width

struct Exports {
  bool open = false;                // the dialog is open
  std::string panel;                // id of the panel to export
  std::vector<std::string> titles;  // titles of its charts
  int chart = 0;                    // index into titles; titles.size() = all
  bool csv = true, svg = true, png = false;
  int png_scale = 2;
  std::string folder;
  bool can_read_pixels = false;        // a window exists
  int screenshot_in = 0;               // frames until a screenshot of the whole window; 0 = none
  std::shared_ptr<FileWriter> writer;  // null until the first export
  bool busy() const { return screenshot_in > 0 || (writer && writer->busy()); }
};

// Opens the dialog for a panel's charts, or shows why there is nothing to export. `chart`: title of the chart to choose.
void open_export(UiState& ui, const std::string& panel, const std::string& chart = "");
// The same for the active panel.
void export_front(UiState& ui);
// Performs the export with the choices of the dialog.
void export_charts(UiState& ui);
// Button "..." at the right end of the line, for panels with charts; the cursor continues after it.
void export_button(UiState& ui, const char* panel);
float export_button_width();
// The folder of exports: as chosen, else the default.
std::string exports_folder(const Exports& exports);
// Draws the dialog. Called once a frame.
void draw_export(UiState& ui);
// Reports results of the writer as toasts. Called once a frame, even if no frame is drawn.
void tick_exports(UiState& ui);

}  // namespace comera::studio
