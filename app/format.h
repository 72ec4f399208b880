// Numbers and errors as text for people, shared by the command line and the window.
#pragma once
#include <cstdint>
#include <string>

namespace comera {

class Error;
struct ModelSize;

std::string thousands(double value);                          // 1,490,157
std::string grouped(int64_t value);                           // 1,490,157, from an integer
std::string counted(int64_t count, const std::string& noun);  // "1 run", "2 runs"
std::string lower_case(std::string text);                     // ASCII letters only
std::string significant(double value, int digits = 4);        // 0.8312; the integer part is never rounded: 1,234, 23,441
std::string axis_number(double value);                        // label of an axis: 0.05, 2,000, 12,500, 1.5M, 2e-05
std::string three_figures(double value);                      // "41.8", "1,338": three significant figures, or the whole integer part
std::string mebibytes(double bytes);                          // four figures: "0.4092 MiB", "5.684 MiB", "23,441 MiB"
std::string megabytes(double bytes);                          // the same in units of 10^6 bytes, as in papers: "5.960 MB"
std::string exact_bytes(double bytes);                        // "5.684 MiB = 5.960 MB (5,960,112 bytes)"
std::string smaller_than_dense(const ModelSize& size);        // "34.6x smaller than dense"; "all pruned"
std::string duration(double seconds);                         // "9 m 24 s"; "-" = not known
std::string full_text(const Error& error);                    // "WHAT: WHY. Try: HINT"
std::string shell_word(const std::string& text);              // as a word of a shell command, in quotes where it needs them
std::string ago(double seconds);                              // age of a recent event: "0.4 s", "12 s", "2 m 10 s"

}  // namespace comera
