#include "app/cli/sweep_slurm.h"

#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/base/paths.h"

namespace comera::cli {
namespace {
namespace fs = std::filesystem;

// Slurm replaces %a and others in the names of output files.
std::string without_percent(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

}  // namespace

int write_slurm(const Context& context, const SlurmArray& array, const std::string& file) {
  const std::string folder = fs::absolute(array.folder).lexically_normal().string();
  if (folder.find_first_of("\"\n") != std::string::npos)
    throw Error(ErrorCode::usage, "--slurm " + array.folder + ": the path has a quote or a line break", "Slurm cannot read it",
                "use another folder");
  const fs::path copy = fs::path(folder) / (array.name + ".json"), script = fs::path(folder) / (array.name + ".sbatch");
  paths::ensure_folder_of(copy.string());
  std::error_code ignored;
  if (!fs::equivalent(file, copy, ignored)) {
    OutputFile out(copy.string());
    out.stream() << std::ifstream(file, std::ios::binary).rdbuf();
    out.finish();
  }
  OutputFile out(script.string());
  out.stream() << "#!/bin/bash\n"
               << "# Run K of the sweep " << array.name << " as task K, into FOLDER/sweep-K.db. A task that is started again continues.\n"
               << "# Largest planned training memory of a run: " << mebibytes(static_cast<double>(array.planned_bytes))
               << "; data and program come on top.\n"
               << "#SBATCH --job-name=" << array.name << "\n"
               << "#SBATCH --array=0-" << array.tasks - 1 << (array.at_once > 0 ? "%" + std::to_string(array.at_once) : "") << "\n"
               << "#SBATCH --cpus-per-task=" << array.threads << "\n"
               << (array.gpu ? "#SBATCH --gres=gpu:1\n" : "") << "#SBATCH --output=\"" << without_percent(folder) << "/sweep-%a.log\"\n"
               << "#SBATCH --open-mode=append\n"
               << "#SBATCH --requeue\n"
               << "#SBATCH --signal=B:TERM@60\n"
               << "cd -- " << shell_word(fs::current_path().string()) << " || exit\n"
               << "exec " << shell_word(fs::read_symlink("/proc/self/exe").string()) << " sweep " << shell_word(copy.string())
               << " --task \"$SLURM_ARRAY_TASK_ID\" --store " << shell_word(folder) << "/\"sweep-$SLURM_ARRAY_TASK_ID.db\"\n";
  out.finish();
  if (context.json) {
    print_json({{"script", script.string()}, {"file", copy.string()}, {"tasks", array.tasks}});
    return 0;
  }
  note(context, "start it: sbatch " + shell_word(script.string()));
  note(context, "then: comera import " + shell_word(folder) + "/*.db, and comera sweep " + shell_word(copy.string()) + " shows the table");
  std::cout << script.string() << "\n";
  return 0;
}

}  // namespace comera::cli
