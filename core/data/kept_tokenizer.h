// A run's own copy of its tokenizer, in a folder next to its checkpoints (paths::kTokenizer): the file that the config names may be moved
// or changed later, and what the run has learned belongs to the tokens it was trained with.
#pragma once
#include <string>
#include <vector>

namespace comera {

// Copies a tokenizer (a file as of tokenizer_file()) into a folder, under the names that the transformers library looks for, with its
// settings and those of `more` that lie next to it. Throws std::filesystem::filesystem_error.
void copy_tokenizer(const std::string& file, const std::string& folder, const std::vector<std::string>& more = {});

// Throws Error(usage) where the folder has a tokenizer that would be read in place of the copy.
void check_place_of_tokenizer(const std::string& file, const std::string& folder);

// `named`: as of open_tokenizer(); `checkpoints`: the folder of a run's checkpoints. Nothing is copied where `named` is empty, or where the
// folder has a copy. Returns why it could not be copied; "" = it could. A crash leaves a whole copy or none.
std::string keep_tokenizer(const std::string& named, const std::string& checkpoints);

// `named`, or the copy, where there is one and the named file is gone or no longer equal to it.
std::string kept_tokenizer(const std::string& named, const std::string& checkpoints);

}  // namespace comera
