// How numbers look to people; the same in the command line and in the window.
#pragma once
#include <string>

namespace comera {

std::string thousands(double value);                    // 1,490,157
std::string significant(double value, int digits = 4);  // 0.8312
std::string three_figures(double value);                // "41.8", "1,338": three significant figures, or all before the point
std::string mebibytes(double bytes);                    // "5.684 MiB"
std::string duration(double seconds);                   // "9 m 24 s"; "-" when not known
std::string ago(double seconds);                        // of something recent: "0.4 s", "12 s", "2 m 10 s"

}  // namespace comera
