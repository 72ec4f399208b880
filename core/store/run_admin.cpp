#include "core/store/run_admin.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/store/checkpoint_files.h"
#include "core/store/run_ops.h"
#include "core/store/schema.h"
#include "core/store/spill.h"
#include "core/store/writer_lock.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

void one_line(const std::string& text, const char* what) {
  const bool control = std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 32 || c == 127; });
  if (text.empty() || control)
    throw Error(ErrorCode::usage, std::string("a ") + what + " must be one line of text",
                text.empty() ? "it is empty" : "it has a line break or a tab");
}

void remove_file(const fs::path& path, RunAdmin::Purged& purged) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return;  // gone already
  if (fs::remove(path, error)) {
    ++purged.files;
    purged.bytes += static_cast<int64_t>(bytes);
  } else {
    purged.left.push_back(path.string() + ": " + error.message());
  }
}

}  // namespace

RunAdmin::RunAdmin(const std::string& store) : db_(open_store(store, StoreAccess::write)) { merge_spills(*db_); }
RunAdmin::~RunAdmin() = default;

int64_t RunAdmin::key_of(const std::string& id) {
  const int64_t key = find_run(*db_, id);
  if (key == 0) throw Error(ErrorCode::not_found, "there is no run " + id + " in " + db_->path(), "", "comera runs list shows the runs");
  return key;
}

void RunAdmin::rename(const std::string& id, const std::string& name) {
  one_line(name, "name");
  Statement(*db_, "UPDATE runs SET name = ? WHERE run = ?").bind(name, key_of(id)).run();
}

void RunAdmin::change_tags(const std::string& id, const std::string& tag, bool add) {
  one_line(tag, "tag");
  Transaction transaction(*db_);
  const int64_t key = key_of(id);
  Statement row(*db_, "SELECT tags FROM runs WHERE run = ?");
  row.bind(key).step();
  std::vector<std::string> tags = tags_of(row.text(0));
  row.reset();
  std::erase(tags, tag);
  if (add) tags.push_back(tag);
  Statement(*db_, "UPDATE runs SET tags = ? WHERE run = ?").bind(tags_text(tags), key).run();
  transaction.commit();
}

void RunAdmin::add_tag(const std::string& id, const std::string& tag) { change_tags(id, tag, true); }
void RunAdmin::remove_tag(const std::string& id, const std::string& tag) { change_tags(id, tag, false); }

void RunAdmin::set_notes(const std::string& id, const std::string& notes) {
  Statement(*db_, "UPDATE runs SET notes = ? WHERE run = ?").bind(notes, key_of(id)).run();
}

void RunAdmin::move_data(const std::string& id, const std::string& set, const std::string& vocab) {
  Statement(*db_, "UPDATE runs SET config = json_set(config, '$.data.set', ?, '$.data.vocab', ?) WHERE run = ?")
      .bind(set, vocab, key_of(id))
      .run();
}

void RunAdmin::archive(const std::string& id) { Statement(*db_, "UPDATE runs SET archived = 1 WHERE run = ?").bind(key_of(id)).run(); }
void RunAdmin::restore(const std::string& id) { Statement(*db_, "UPDATE runs SET archived = 0 WHERE run = ?").bind(key_of(id)).run(); }

RunAdmin::Purged RunAdmin::purge(const std::string& id, const std::string& typed_name) {
  Transaction transaction(*db_);
  const int64_t key = key_of(id);
  Statement row(*db_, "SELECT name, status, heartbeat, pid, boot_id FROM runs WHERE run = ?");
  row.bind(key).step();
  if (row.text(0) != typed_name)
    throw Error(ErrorCode::usage, "run " + id + " was not purged", "'" + typed_name + "' is not its name",
                "repeat its name to confirm: " + row.text(0));
  if (row.text(1) == "running" && writer_alive(db_->path(), key, row.real(2), row.integer(3), row.text(4)))
    throw Error(ErrorCode::usage, "run " + id + " was not purged", "process " + std::to_string(row.integer(3)) + " is training it",
                "stop it first");
  row.reset();
  std::vector<std::string> files;
  Statement written(*db_, "SELECT path FROM checkpoints WHERE run = ?");
  for (written.bind(key); written.step();) files.push_back(place_of_checkpoint(written.text(0), db_->path()));
  written.reset();
  for (const char* table : {"metrics", "steps", "ranks", "memory", "events", "checkpoints", "runs"})
    Statement(*db_, std::string("DELETE FROM ") + table + " WHERE run = ?").bind(key).run();
  transaction.commit();

  // Rows first: a file without a row wastes space, a row without its file would be a lie.
  Purged purged;
  const fs::path own = checkpoint_folder(db_->path(), id, true);
  const std::string lister = lister_of(db_->path(), id, files);
  std::vector<fs::path> folders = {own};
  if (lister.empty()) folders.emplace_back(checkpoint_folder(db_->path(), id));
  for (const std::string& name : files) {
    const fs::path file(name), folder = file.parent_path();
    if (!lister.empty() && folder != own) {
      purged.left.push_back(name + ": " + lister + " lists it, too");
      continue;
    }
    remove_file(file, purged);
    if (folder.filename() == id) folders.push_back(folder);
  }
  // A resume from an earlier step leaves later checkpoints in the run's own folder without rows.
  const std::vector<std::string> tokenizers = {paths::kTokenizer, std::string(paths::kTokenizer) + ".part"};
  for (const fs::path& folder : folders) {
    std::error_code error;
    std::vector<fs::path> rest;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->path().filename().string().rfind("step-", 0) == 0) rest.push_back(it->path());
    for (const std::string& name : tokenizers)
      for (fs::directory_iterator it(folder / name, error), end; !error && it != end; it.increment(error)) rest.push_back(it->path());
    for (const fs::path& file : rest) remove_file(file, purged);
    for (const std::string& name : tokenizers) fs::remove(folder / name, error);  // these only when they are empty
    fs::remove(folder, error);
  }
  std::error_code ignored;
  fs::remove(own.parent_path(), ignored);
  return purged;
}

}  // namespace comera
