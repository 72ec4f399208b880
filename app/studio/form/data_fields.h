// The settings of the form that name data: the data set, the columns of a table, and facts about what is read.
#pragma once
#include <string>

namespace comera::studio {

struct NewRun;
struct UiState;

// Facts about the data set from its loader; for text also a histogram of lengths.
void draw_data_facts(const NewRun& form, float room);
// Whether the setting is a column of a table whose columns are known.
bool knows_column(const NewRun& form, const std::string& path);
// Its columns as a list, below the one that is found by its name. True when `value` was changed, as of data_combo().
bool column_combo(const NewRun& form, const std::string& path, std::string& value);
// Known data sets, files and folders.
bool data_combo(UiState& ui, std::string& value, float width);

}  // namespace comera::studio
