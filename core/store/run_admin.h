// What a person does to stored runs: rename, tag, annotate, archive, purge. Each call is one transaction of its own.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace comera {

class Database;

// Thread: one at a time. Runs by exact id (RunReader::find() turns what a person types into one); an unknown one
// throws Error(not_found), a store that cannot be written Error(storage).
class RunAdmin {
 public:
  // Opens for writing; migrates and merges like RunWriter, but never creates a store: Error(not_found).
  explicit RunAdmin(const std::string& store);
  ~RunAdmin();

  void rename(const std::string& id, const std::string& name);  // Error(usage) when empty or of several lines
  void add_tag(const std::string& id, const std::string& tag);  // no effect when there; Error(usage) as rename
  void remove_tag(const std::string& id, const std::string& tag);
  void set_notes(const std::string& id, const std::string& notes);
  // Where a run's data and tokenizer are now: data.set and data.vocab of its config.
  void move_data(const std::string& id, const std::string& set, const std::string& vocab);
  void archive(const std::string& id);  // hidden from the list, nothing is deleted
  void restore(const std::string& id);

  struct Purged {
    int64_t files = 0, bytes = 0;   // removed
    std::vector<std::string> left;  // files that were not, with the reason
  };
  // Deletes a run's rows for ever, and its checkpoint files but for those that another store lists (lister_of()). `typed_name` must be its
  // name: Error(usage). A running run is refused: Error(usage).
  Purged purge(const std::string& id, const std::string& typed_name);

 private:
  int64_t key_of(const std::string& id);
  void change_tags(const std::string& id, const std::string& tag, bool add);
  std::unique_ptr<Database> db_;
};

}  // namespace comera
