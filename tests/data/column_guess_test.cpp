// Which columns have the text and the label, where their names do not tell.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/data/text_lines.h"

namespace comera {
namespace {

std::vector<std::string> columns(const std::string& name, const std::string& bytes) { return TextLayout::columns_of(name, bytes); }
ColumnNames guess(const std::string& name, const std::string& bytes) { return TextLayout::guess(name, bytes); }

// `rows` rows of a name, one of three labels, a longer text and a number.
std::string table(char separator, const std::string& header, int rows = 30) {
  std::string out = header + "\n";
  for (int i = 0; i < rows; ++i) {
    out += "item" + std::to_string(i) + separator +
           (i % 3 == 0   ? "good"
            : i % 3 == 1 ? "bad"
                         : "so so") +
           separator + "the text of row " + std::to_string(i) + separator + std::to_string(i * 7) + "\n";
  }
  return out;
}

TEST(ColumnGuess, TheTextHasTheMostWordsAndLabelsComeAgain) {
  const ColumnNames wanted{"body", "", "mood"};
  EXPECT_EQ(guess("a.csv", table(',', "name,mood,body,size")), wanted);
  EXPECT_EQ(guess("a.csv", table(';', "name;mood;body;size")), wanted);
  EXPECT_EQ(guess("a.tsv", table('\t', "name\tmood\tbody\tsize")), wanted);
  std::string json;
  for (int i = 0; i < 30; ++i)
    json += R"({"body": "the text of row )" + std::to_string(i) + R"(", "stars": )" + std::to_string(i % 5) + "}\n";
  EXPECT_EQ(guess("a.jsonl", json), (ColumnNames{"body", "", "stars"}));
}

TEST(ColumnGuess, UsualNamesWin) {
  EXPECT_EQ(guess("a.csv", table(',', "sentence,mood,body,size")), (ColumnNames{"sentence", "", "mood"}));
  EXPECT_EQ(guess("a.csv", table(',', "question,label,sentence,size")), (ColumnNames{"question", "sentence", "label"}));
  EXPECT_EQ(guess("a.csv", table(',', "docstring,label,code,size")), (ColumnNames{"docstring", "code", "label"}));
  EXPECT_EQ(guess("a.csv", table(',', "docstring,mood,code,size")), (ColumnNames{"code", "", "mood"})) << "code to be read by itself";
  // Of two columns that may be labels the one with a usual name.
  std::string two = "flag,Category,words\n";
  for (int i = 0; i < 40; ++i)
    two += std::string(i % 2 ? "y" : "n") + "," + std::string(1, static_cast<char>('a' + i % 4)) + ",some words here\n";
  EXPECT_EQ(guess("a.csv", two), (ColumnNames{"words", "", "Category"}));
}

TEST(ColumnGuess, WhatIsNotThereStaysEmpty) {
  EXPECT_EQ(guess("a.csv", "a,b\nx y z,1\nu v w,2\n").label, "") << "every value once";
  EXPECT_EQ(guess("a.csv", "a,b\n"), ColumnNames());
  std::string gaps = "text,mark\n";
  for (int i = 0; i < 30; ++i) gaps += "some words," + std::string(i % 3 == 0 ? "" : i % 3 == 1 ? "p" : "q") + "\n";
  EXPECT_EQ(guess("a.csv", gaps), (ColumnNames{"text", "", ""})) << "rows without a label";
  std::string few = "text,shop,mark\n";
  for (int i = 0; i < 60; ++i)
    few += "some words," + std::string(1, static_cast<char>('a' + i % 5)) + (i == 7 ? "," : i % 2 ? ",p" : ",q") + "\n";
  EXPECT_EQ(guess("a.csv", few).label, "mark") << "reading the file reports the empty cell";
  gaps.replace(0, 9, "text,topic");
  EXPECT_EQ(guess("a.csv", gaps).label, "topic") << "its name says label; reading the file reports its empty cells";
  EXPECT_EQ(guess("a.csv", table(',', "name,mood,body,size") + "a broken row\n\"no end").first, "body");
  EXPECT_THROW(guess("a.csv", std::string("a\0b", 3)), Error);
  EXPECT_EQ(guess("a.csv", "text,label,,\nsome words,1,,\n").first, "text") << "columns without a name";
}

TEST(ColumnGuess, ListsAllColumnsWhateverTheirNames) {
  EXPECT_EQ(columns("a.csv", "id,\"a, b\",note\n1,2,3\n"), (std::vector<std::string>{"id", "a, b", "note"}));
  EXPECT_EQ(columns("a.tsv", "x\ty\n"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(columns("a.jsonl", "{\"about\": 1, \"topic\": 2}\n{\"other\": 1}\n"), (std::vector<std::string>{"about", "topic"}));
}

}  // namespace
}  // namespace comera
