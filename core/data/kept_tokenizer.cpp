#include "core/data/kept_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/paths.h"
#include "core/data/tokenizer.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

bool two_files(const fs::path& tokenizer) { return tokenizer.filename() == "vocab.json" || tokenizer.filename() == "merges.txt"; }

// Files that the tokens depend on: their names in the tokenizer's folder, and in a copy.
std::vector<std::pair<std::string, std::string>> own_files(const fs::path& tokenizer) {
  if (two_files(tokenizer)) return {{"vocab.json", "vocab.json"}, {"merges.txt", "merges.txt"}};
  return {{tokenizer.filename().string(), tokenizer.extension() == ".json" ? "tokenizer.json" : "vocab.txt"}};
}

constexpr const char* kSettings = "tokenizer_config.json";  // a tokenizer.json has them itself

bool same_tokens(const fs::path& tokenizer, const fs::path& copy) {
  auto files = own_files(tokenizer);
  const bool settings = fs::exists(tokenizer.parent_path() / kSettings);
  if (files.front().second != "tokenizer.json") {
    if (settings != fs::exists(copy / kSettings)) return false;
    if (settings) files.emplace_back(kSettings, kSettings);
  }
  return std::ranges::all_of(files, [&](const auto& names) {
    return MappedFile((tokenizer.parent_path() / names.first).string()).bytes() == MappedFile((copy / names.second).string()).bytes();
  });
}

}  // namespace

void copy_tokenizer(const std::string& file, const std::string& folder, const std::vector<std::string>& more) {
  const fs::path from = fs::path(file).parent_path(), to(folder);
  const auto copy = [&](const std::string& own, const std::string& name) {
    std::error_code ignored;
    if (!fs::equivalent(from / own, to / name, ignored)) fs::copy_file(from / own, to / name, fs::copy_options::overwrite_existing);
  };
  fs::create_directories(to);
  for (const auto& [own, name] : own_files(file)) copy(own, name);
  std::vector<std::string> settings = {kSettings, "special_tokens_map.json", "added_tokens.json"};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const std::string& name : settings)
    if (fs::is_regular_file(from / name)) copy(name, name);
}

void check_place_of_tokenizer(const std::string& file, const std::string& folder) {
  const std::string there = fs::path(tokenizer_file_in(folder)).filename(), copy = own_files(file).front().second;
  if (!there.empty() && there != copy && copy != "tokenizer.json")
    throw Error(ErrorCode::usage, folder + " has another tokenizer", there + " would be read in place of " + copy,
                "name an empty folder, or remove " + there);
}

std::string keep_tokenizer(const std::string& named, const std::string& checkpoints) {
  const fs::path folder = fs::path(checkpoints) / paths::kTokenizer;
  if (named.empty() || !tokenizer_file_in(folder.string()).empty()) return "";
  const fs::path part = folder.string() + ".part";
  std::error_code ignored;
  try {  // with the settings of its model, which tell the ids of special tokens
    copy_tokenizer(tokenizer_file(named), part.string(), {"config.json", "generation_config.json"});
    fs::rename(part, folder);
    return "";
  } catch (const std::exception& error) {
    fs::remove_all(part, ignored);
    return error.what();
  }
}

std::string kept_tokenizer(const std::string& named, const std::string& checkpoints) {
  const fs::path folder = fs::path(checkpoints) / paths::kTokenizer;
  const std::string copy = tokenizer_file_in(folder.string());
  if (named.empty() || copy.empty()) return named;
  try {
    if (same_tokens(tokenizer_file(named), folder)) return named;
  } catch (const Error&) {  // no longer there, or another kind of tokenizer
  }
  return copy;
}

}  // namespace comera
