// Version of the program: what it prints, and what a run stores of the program that trains it.
#pragma once
#include <string>

namespace comera {

const char* version_number();  // "0.1.0"
// Short hash of the commit at configure time; "unknown" outside a repository.
const char* version_commit();
// "0.1.0 (commit 1234567)"
std::string version_stored();
// "comera 0.1.0 (commit 1234567, CUDA built in, OpenBLAS from PyPI)"
std::string version_text(const std::string& program);

}  // namespace comera
