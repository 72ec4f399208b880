#include "app/cli/help.h"

#include <map>
#include <memory>
#include <string>

namespace comera::cli {
namespace {

// Key: the words of the verb; "" is the program.
const std::map<std::string, const char*>& examples() {
  static const std::map<std::string, const char*> kExamples = {
      {"",
       "  comera train demo\n"
       "  comera plan encoder6-mnli\n"
       "  comera runs list"},
      {"train",
       "  comera train demo\n"
       "  comera train encoder2-nli --steps 2000 --set method.comera.target=0.2\n"
       "  comera train demo --method galore+adam8bit --set method.galore.rank=32\n"
       "  comera train demo --edit 500:stage=late --edit 800:rank.cap.fc0.2=8\n"
       "  mpirun -n 4 --bind-to none comera train encoder2-nli\n"
       "  comera train hf:bert-folder --data reviews.csv --task classify --method lora\n"
       "  comera train hf:llama-folder --data texts --task lm --method comera --tt-compression 4"},
      {"resume",
       "  comera resume RUN\n"
       "  comera resume RUN --from-step 500 --extend 1000"},
      {"fork", "  comera fork RUN --at-step 2000 --set train.lr_rank=2e-3"},
      {"eval", "  comera eval RUN --data test.jsonl"},
      {"predict", "  comera predict RUN --data test.jsonl -o predictions.jsonl"},
      {"generate", "  comera generate RUN --prompt \"dog: \" --tokens 100 --temperature 0.7"},
      {"plan",
       "  comera plan encoder6-mnli\n"
       "  comera plan encoder6-mnli --all-methods --set train.batch=32\n"
       "  comera plan demo --set train.batch=64 --json\n"
       "  comera plan hf:llama-folder --method comera --tt-error 0.1"},
      {"duel",
       "  comera duel demo --methods adamw,galore,comera --steps 1000\n"
       "  comera duel demo --memory 32MiB --seeds 3 --set train.max_steps_per_s=0 -o pareto.svg"},
      {"sweep",
       "  comera sweep lr.json --plan\n"
       "  comera sweep lr.json --jobs 2\n"
       "  comera sweep lr.json --slurm FOLDER\n"
       "with lr.json, for example:\n"
       "  {\"base\": \"demo\", \"set\": {\"train.steps\": 1000, \"train.max_steps_per_s\": 0},\n"
       "   \"grid\": {\"train.lr_core\": [1e-3, 3e-3], \"method.comera.target\": [0.2, 0.5]}, \"seeds\": [1, 2, 3]}\n"
       "or with draws, of which the best half of each rung continues:\n"
       "  {\"base\": \"demo\", \"random\": {\"runs\": 16, \"seed\": 1, \"ranges\": {\"train.lr_core\": {\"log\": [1e-4, 1e-2]}}},\n"
       "   \"halving\": {\"metric\": \"val_accuracy\", \"rungs\": [200, 400, 800], \"keep\": 0.5}}"},
      {"runs",
       "  comera runs list\n"
       "  comera runs show RUN\n"
       "  comera runs diff RUN OTHER"},
      {"runs list", "  comera runs list --all --plain"},
      {"runs show", "  comera runs show RUN --json"},
      {"runs diff", "  comera runs diff RUN OTHER"},
      {"runs rename", "  comera runs rename RUN \"late 0.2\""},
      {"runs tag",
       "  comera runs tag RUN paper\n"
       "  comera runs tag RUN paper --remove"},
      {"runs archive", "  comera runs archive RUN"},
      {"runs restore", "  comera runs restore RUN"},
      {"runs purge", "  comera runs purge RUN --confirm \"its name\""},
      {"runs salvage", "  comera runs salvage damaged.db -o saved.db"},
      {"get",
       "  comera get RUN\n"
       "  comera get RUN --metric train_loss --plain"},
      {"ranks", "  comera ranks RUN --step 2000"},
      {"query", "  comera query \"SELECT name, val_accuracy FROM runs\""},
      {"export",
       "  comera export RUN --to csv --wide -o run.csv\n"
       "  comera export RUN --to safetensors --names official -o model.safetensors\n"
       "  comera export RUN --to peft -o adapter\n"
       "  comera export RUN --to gguf --dtype q8_0 -o model.gguf\n"
       "  comera export RUN --to svg --metric train_loss --metric val_loss -o loss.svg\n"
       "  comera export RUN --to png --scale 4 --draw tensor-trains --step 500 -o diagram.png"},
      {"import",
       "  comera import logs/events.out.tfevents.123 --name baseline\n"
       "  comera import sweep/*.db --store merged.db\n"
       "  comera import model.safetensors --config encoder2-nli\n"
       "  comera import llama-folder --set method.weights=lora"},
      {"reproduce", "  comera reproduce RUN"},
      {"data",
       "  comera data list\n"
       "  comera data get wordnet-nli\n"
       "  comera data check train.tsv"},
      {"data list", "  comera data list"},
      {"data get", "  comera data get wordnet-nli fashion-mnist"},
      {"data check", "  comera data check train.tsv --vocab vocab.txt"},
      {"data suggest", "  comera data suggest reviews.csv"},
      {"data show", "  comera data show reviews.csv --text review --label stars"},
      {"config",
       "  comera config show demo --origin\n"
       "  comera config init demo -o mine.json\n"
       "  comera config validate mine.json"},
      {"config show", "  comera config show demo --set train.batch=64 --origin"},
      {"config explain", "  comera config explain method.stash"},
      {"config validate", "  comera config validate mine.json"},
      {"config init", "  comera config init demo -o mine.json"},
      {"bench",
       "  comera bench step encoder6-mnli\n"
       "  comera bench gemm encoder6-mnli --json"},
      {"bench step", "  comera bench step encoder6-mnli --steps 20"},
      {"bench layers", "  comera bench layers encoder6-mnli"},
      {"bench gemm", "  comera bench gemm encoder6-mnli"},
      {"doctor", "  comera doctor --json"},
      {"completion", "  comera completion bash > ~/.local/share/bash-completion/completions/comera"},
  };
  return kExamples;
}

std::string words_of(const CLI::App* app) {
  if (!app->get_parent()) return "";
  const std::string before = words_of(app->get_parent());
  return before + (before.empty() ? "" : " ") + app->get_name();
}

class Help : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const auto found = examples().find(words_of(app));
    const std::string about = CLI::Formatter::make_description(app);
    return found == examples().end() ? about : about + "\nExamples:\n" + found->second + "\n\n";
  }
};

}  // namespace

void set_help(CLI::App& app) { app.formatter(std::make_shared<Help>()); }

}  // namespace comera::cli
