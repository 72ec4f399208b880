#include "app/studio/parts/file_writer.h"

#include <utility>

#include "app/format.h"
#include "app/studio/free_path.h"
#include "app/studio/whole_file.h"
#include "core/base/error.h"
#include "core/base/paths.h"

namespace comera::studio {

FileWriter::FileWriter() {
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

FileWriter::~FileWriter() {
  thread_.request_stop();
  thread_.join();
}

void FileWriter::write(Batch batch) {
  const std::lock_guard lock(mutex_);
  batches_.push_back(std::move(batch));
  asked_.notify_all();
}

void FileWriter::give_up() {
  const std::lock_guard lock(mutex_);
  Result dropped;
  dropped.given_up = true;
  results_.insert(results_.end(), batches_.size(), dropped);
  batches_.clear();
  if (writing_) gives_up_ = true;
}

FileWriter::Unfinished FileWriter::unfinished() const {
  const std::lock_guard lock(mutex_);
  Unfinished all = now_;
  for (const Batch& batch : batches_) {
    if (all.files == 0) all.folder = batch.folder;
    all.files += batch.files.size();
  }
  return all;
}

bool FileWriter::busy() const {
  const std::lock_guard lock(mutex_);
  return writing_ || !batches_.empty() || !results_.empty();
}

std::vector<FileWriter::Result> FileWriter::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

FileWriter::Result FileWriter::write_batch(const Batch& batch) {
  Result result;
  try {
    paths::ensure_folder(batch.folder);
    for (const File& file : batch.files) {
      const std::string path = free_path(batch.folder, file.name, file.extension);
      write_whole(path, gives_up_, [&](std::ostream& out) { out << file.contents(); });
      result.written.push_back(path);
      const std::lock_guard lock(mutex_);
      --now_.files;
    }
  } catch (const GivenUp&) {
    result.given_up = true;
  } catch (const Error& error) {
    result.problem = full_text(error);
  } catch (const std::exception& error) {
    result.problem = std::string("the export failed: ") + error.what();
  }
  return result;
}

void FileWriter::work(const std::stop_token& stop) {
  for (;;) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      if (!asked_.wait(lock, stop, [&] { return !batches_.empty(); })) return;
      batch = std::move(batches_.front());
      batches_.pop_front();
      writing_ = true;
      gives_up_ = false;
      now_ = {batch.files.size(), batch.folder};
    }
    Result result = write_batch(batch);
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
    writing_ = false;
    now_ = {};
  }
}

}  // namespace comera::studio
