// Cells of CSV text: one rule for files of texts and for imported curves.
#include "core/base/csv.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/base/error.h"

namespace comera {
namespace {

using Cells = std::vector<std::string>;

TEST(Csv, AQuoteInsideOfACellIsACharacter) {
  std::istringstream in("a 5\" disk,b\nc,\"d\ne\"\n");
  CsvReader reader(in);
  Cells cells;
  ASSERT_TRUE(reader.next(cells));
  EXPECT_EQ(cells, (Cells{"a 5\" disk", "b"}));
  ASSERT_TRUE(reader.next(cells));
  EXPECT_EQ(cells, (Cells{"c", "d\ne"}));
  EXPECT_EQ(reader.line(), 2);
  EXPECT_FALSE(reader.next(cells));
}

TEST(Csv, TextBehindAQuotedCellIsAnError) {
  std::istringstream in("a,b\n\"c\"d,e\n");
  CsvReader reader(in);
  Cells cells;
  reader.next(cells);
  try {
    reader.next(cells);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "line 2 is not a record of a CSV");
    EXPECT_EQ(error.why(), "text follows the quote that ends cell 1");
    EXPECT_FALSE(error.hint().empty());
  }
}

// A record ends where its cells end: split at every line end that the scan finds, all records are whole.
TEST(Csv, TheScanEndsWhereTheCellsDo) {
  uint32_t state = 7;
  for (int round = 0; round < 300; ++round) {
    std::vector<Cells> records;
    std::string text;
    const char separator = round % 2 ? ';' : ',';
    for (int r = 0; r < 4; ++r) {
      Cells cells;
      for (int c = 0; c < 3; ++c) {
        std::string cell, quoted = "\"";
        for (int i = 0; i < 4; ++i) cell += "a\"\n,; "[(state = state * 1664525u + 1013904223u) >> 16 & 3 ? state % 6 : 0];
        for (const char byte : cell) quoted += byte == '"' ? std::string("\"\"") : std::string(1, byte);
        text += (c ? std::string(1, separator) : "") + quoted + "\"";
        cells.push_back(cell);
      }
      text += "\n";
      records.push_back(cells);
    }
    CsvScan scan(separator);
    std::string record, why;
    size_t seen = 0;
    for (const char byte : text) {
      if (!scan.ends(byte)) {
        record += byte;
        continue;
      }
      Cells cells;
      ASSERT_TRUE(csv_cells(record, separator, cells, why)) << why;
      EXPECT_EQ(cells, records.at(seen++));
      record.clear();
    }
    EXPECT_EQ(seen, 4u);
  }
}

}  // namespace
}  // namespace comera
