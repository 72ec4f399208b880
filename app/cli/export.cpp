// comera export RUN --to ... and comera import PATH
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "app/cli/folder.h"
#include "app/figure/raster.h"
#include "app/figure/run_picture.h"
#include "core/base/remove_later.h"
#include "core/session/model_run.h"
#include "core/session/stored_run.h"
#include "core/store/export.h"
#include "core/store/import.h"
#include "core/store/run_reader.h"
#include "core/store/trace.h"
#include "core/train/model_export.h"
#include "core/train/model_import.h"

namespace comera::cli {
namespace {
namespace fs = std::filesystem;

struct ExportOptions {
  std::string run, to, output, base, names = "own", draw = "curves", theme = "light", config, name, dtype = "float32";
  std::vector<std::string> sets, metrics, paths;  // paths: to import
  bool dense = false, folded = false, wide = false;
  int64_t step = -1;
  int scale = 2;
};

int done(const Context& context, const std::string& path) {
  if (context.json)
    print_json({{"file", path}});
  else
    note(context, "wrote " + path);
  return 0;
}

// A chart or diagram as SVG or PNG bytes, drawn by the window's code.
std::string picture(const Context& context, const ExportOptions& options) {
  Replay replay(store_to_read(context), options.run);
  if (options.step >= 0) replay.seek(options.step);
  choose_theme(theme_of_name(options.theme).value_or(ThemeKind::light));
  const RunPicture what = options.draw == "ranks"    ? RunPicture::ranks
                          : options.draw == "curves" ? RunPicture::curves
                                                     : RunPicture::tensor_trains;
  if (what != RunPicture::curves && !options.metrics.empty())
    throw Error(ErrorCode::usage, "--metric selects curves", "--draw " + options.draw + " shows ranks", "leave out --metric or --draw");
  const Drawing drawing = draw_run(replay, what, options.metrics);
  if (options.to == "svg") return to_svg(drawing);
  return png_file(raster(drawing, static_cast<float>(options.scale) * drawing.unit));
}

int tell_difference(const Context& context, const char* kind, const std::string& output, const Difference& difference) {
  if (context.json) {
    Json json = {{kind, output}, {"largest_difference", difference.weight}, {"largest_logit_difference", difference.logit}};
    if (!difference.tokenizer.empty()) json["tokenizer"] = difference.tokenizer;
    if (!difference.missing.empty()) json["missing_tokenizer"] = difference.missing;
    print_json(json);
    return 0;
  }
  char text[200];
  std::snprintf(text, sizeof text, "; read again, no weight differs by more than %.3g, no logit by more than %.3g", difference.weight,
                difference.logit);
  note(context, "wrote " + output + text);
  if (!difference.tokenizer.empty()) note(context, "its tokenizer is that of " + difference.tokenizer);
  if (!difference.missing.empty()) note(context, "without a tokenizer: " + difference.missing + " no longer exists");
  return 0;
}

// The folder that the run or one of its ancestors began with.
std::string base_of(const Context& context, const ExportOptions& options) {
  if (!options.base.empty()) return options.base;
  if (!fs::is_regular_file(options.run)) {
    const std::string store = store_to_read(context);
    if (const std::string base = base_folder(store, load_stored_run(store, options.run)); !base.empty()) return base;
  }
  throw Error(ErrorCode::usage, "the base model of " + options.run + " is not known",
              "the run did not begin with a model folder that is there",
              "add --base FOLDER; comera export RUN --step 0 --to huggingface -o FOLDER writes one");
}

// huggingface, peft, gguf: for programs that read models of text.
int export_text_model(const Context& context, const ExportOptions& options) {
  const bool file_is_one = options.to == "gguf";
  const std::vector<std::string> types =
      file_is_one ? std::vector<std::string>{"float32", "float16", "q8_0"} : std::vector<std::string>{"float32", "bfloat16", "float16"};
  if (std::find(types.begin(), types.end(), options.dtype) == types.end())
    throw Error(ErrorCode::usage, "--dtype " + options.dtype + " is not one of --to " + options.to,
                "types are " + types[0] + ", " + types[1] + " and " + types[2], "");
  const ModelPath model = model_file(context, options.run, options.step);
  if (options.output.empty() || options.output == "-")
    throw Error(ErrorCode::usage, std::string("no output ") + (file_is_one ? "file" : "folder") + " was given",
                file_is_one ? "a model goes to a file" : "such a model is a folder", "add -o " + model.name + (file_is_one ? ".gguf" : ""));
  if (file_is_one) return tell_difference(context, "file", options.output, export_gguf(model.path, options.output, options.dtype));
  if (options.to == "peft")
    return tell_difference(context, "folder", options.output, export_adapter(model.path, base_of(context, options), options.output));
  return tell_difference(context, "folder", options.output, export_folder(model.path, options.output, options.dtype));
}

// An option that the format does not use would change nothing, so it is refused.
void refuse_unused(const CLI::App& given, const std::string& to) {
  const std::vector<std::string> picture = {"svg", "png"};
  const std::pair<const char*, std::vector<std::string>> used_by[] = {
      {"--names", {"safetensors"}},
      {"--dense", {"safetensors"}},
      {"--folded", {"safetensors"}},
      {"--dtype", {"huggingface", "gguf"}},
      {"--base", {"peft"}},
      {"--wide", {"csv"}},
      {"--scale", {"png"}},
      {"--draw", picture},
      {"--metric", picture},
      {"--theme", picture},
      {"--step", {"safetensors", "huggingface", "peft", "gguf", "svg", "png"}},
  };
  for (const auto& [option, formats] : used_by) {
    if (given.count(option) == 0 || std::find(formats.begin(), formats.end(), to) != formats.end()) continue;
    std::string all;
    for (const std::string& format : formats) all += (all.empty() ? "" : ", ") + format;
    throw Error(ErrorCode::usage, std::string(option) + " is not for --to " + to, "it is for " + all, std::string("leave out ") + option);
  }
}

int export_run(const Context& context, const ExportOptions& options) {
  if (options.to == "huggingface" || options.to == "peft" || options.to == "gguf") return export_text_model(context, options);
  if (options.to == "safetensors") {
    const ModelPath model = model_file(context, options.run, options.step);
    if (options.output.empty())
      throw Error(ErrorCode::usage, "no output file was given", "a model goes to stdout only when asked to",
                  "add -o " + model.name + ".safetensors, or -o -");
    check_stdout(context, options.output);
    const bool piped = options.output == "-";
    const std::string path =
        piped ? (fs::temp_directory_path() / ("comera-export-" + std::to_string(::getpid()))).string() : options.output;
    const RemoveLater remove_piped(piped ? path : "");
    export_model(model.path, path, options.names == "official" ? ExportNames::official : ExportNames::own, options.dense, options.folded);
    if (!piped) return done(context, path);
    OutputFile out("-");
    out.stream() << std::ifstream(path, std::ios::binary).rdbuf();
    out.finish();
    return 0;
  }
  const RunReader reader(store_to_read(context));
  const std::string id = reader.find(options.run).id;
  const bool to_stdout = options.output.empty() || options.output == "-";
  check_stdout(context, to_stdout ? "-" : options.output);
  if (options.to == "tfevents") {
    if (to_stdout)
      throw Error(ErrorCode::usage, "no output folder was given", "TensorBoard reads event files from a folder", "add -o FOLDER");
    return done(context, export_tfevents(reader, id, options.output));
  }
  if (options.to == "png" && options.output.empty())
    throw Error(ErrorCode::usage, "no output file was given", "a picture goes to stdout only when asked to",
                "add -o " + id + ".png, or -o -");
  const bool drawn = options.to == "svg" || options.to == "png";
  const std::string bytes = drawn ? picture(context, options) : "";
  OutputFile file(options.output);
  if (drawn)
    file.stream() << bytes;
  else if (options.to == "csv")
    export_csv(reader, {id}, file.stream(), options.wide);
  else if (options.to == "trace")
    export_trace(reader, id, file.stream());
  else
    export_jsonl(reader, {id}, file.stream());
  file.finish();
  return to_stdout ? 0 : done(context, options.output);
}

// A model folder's config and weights, with the settings that are asked for.
RunConfig folder_run(const ExportOptions& options) {
  RunConfig config = config_of_folder(options.run);
  if (!options.config.empty()) {
    RunConfig given = load_config(options.config, {});
    given.model = config.model;
    given.method.weights = config.method.weights;
    config = given;
  }
  set_config(config, options.sets);
  return config;
}

// A safetensors model or a model folder becomes a finished run with one checkpoint, so that eval, predict and fork work on it.
int import_file(const Context& context, const ExportOptions& options) {
  const bool folder = is_model_folder(options.run);
  if (!folder && fs::path(options.run).extension() != ".safetensors") {
    if (!options.config.empty() || !options.sets.empty())
      throw Error(ErrorCode::usage, "--config and --set are for models", options.run + " is not a model", "leave them out");
    const InputFile input(options.run);
    const Imported imported = import_any(store_path(context), input.path(), options.name);
    if (context.json)
      print_json({{"runs", imported.ids}, {"points", imported.points}, {"notes", imported.notes}});
    else {
      for (const std::string& text : imported.notes) note(context, text);
      for (const std::string& id : imported.ids) std::cout << id << "\n";
    }
    return 0;
  }
  if (!folder && options.config.empty() && !options.sets.empty()) throw Error(ErrorCode::usage, "--set needs a config", "", "add --config");
  const std::string store = store_path(context);
  RunConfig config;
  const bool known = folder || !options.config.empty();
  if (known) config = folder ? folder_run(options) : load_config(options.config, options.sets);
  std::vector<Compressed> compressed;
  const std::string id = store_model(store, options.run, known ? &config : nullptr, options.name, &compressed);
  if (context.json) {
    print_json(
        {{"runs", {id}}, {"checkpoint", RunReader(store).checkpoints(id).front().path}, {"tensor_trains", tensor_trains_json(compressed)}});
    return 0;
  }
  note_tensor_trains(context, compressed);
  std::cout << id << "\n";
  return 0;
}

// Several files at once, as the stores of many machines. Each is all or nothing; what is here already is left as it is.
int import_files(const Context& context, const ExportOptions& options) {
  if (!options.config.empty() || !options.sets.empty() || !options.name.empty())
    throw Error(ErrorCode::usage, "--config, --set and --name are for one file",
                counted(static_cast<int64_t>(options.paths.size()), "file") + " are given", "import the file alone");
  const std::string store = store_path(context);
  Imported all;
  for (const std::string& path : options.paths) {
    std::error_code ignored;
    if (fs::equivalent(store, path, ignored)) {  // FOLDER/*.db may name it too
      all.notes.push_back(path + " is the store itself");
      continue;
    }
    if (path == "-" || is_model_folder(path) || fs::path(path).extension() == ".safetensors")
      throw Error(ErrorCode::usage, path + " cannot be imported together with others", path == "-" ? "stdin is one file" : "it is a model",
                  "import it alone");
    const Imported imported = import_any(store, path);
    all.ids.insert(all.ids.end(), imported.ids.begin(), imported.ids.end());
    for (const std::string& text : imported.notes) all.notes.push_back(fs::path(path).filename().string() + ": " + text);
    all.points += imported.points;
  }
  if (context.json) {
    print_json({{"runs", all.ids}, {"points", all.points}, {"notes", all.notes}});
    return 0;
  }
  for (const std::string& text : all.notes) note(context, text);
  for (const std::string& id : all.ids) std::cout << id << "\n";
  return 0;
}

}  // namespace

void add_export(Verb& program, Context& context) {
  const auto options = std::make_shared<ExportOptions>();
  Verb export_verb = program.verb("export", "export a run as csv, jsonl, TensorBoard events, a trace or a picture, or its model");
  export_verb.option("run", options->run, "run id or name; for safetensors also a checkpoint file").required();
  export_verb
      .option(
          "--to", options->to,
          "csv, jsonl, tfevents, trace (Chrome trace, for Perfetto), safetensors, huggingface (a folder), peft (an adapter folder), gguf, "
          "svg or png")
      .required()
      .one_of({"csv", "jsonl", "tfevents", "trace", "safetensors", "huggingface", "peft", "gguf", "svg", "png"});
  export_verb.option("-o,--output", options->output,
                     "output file (folder for tfevents); - for stdout, the default except for safetensors, png and tfevents");
  export_verb.option("--names", options->names, "safetensors: parameter names, own or official (as in the published PyTorch model)")
      .one_of({"own", "official"})
      .shows_default();
  export_verb.option("--step", options->step, "models and pictures: step of the checkpoint or picture (default: the last)").not_negative();
  export_verb.option("--dtype", options->dtype, "huggingface: float32, bfloat16 or float16; gguf: float32, float16 or q8_0")
      .one_of({"float32", "bfloat16", "float16", "q8_0"});
  export_verb.option("--base", options->base, "peft: folder of the base model (default: the one that the run began with)");
  export_verb.flag("--dense", options->dense, "safetensors: every matrix as a dense one, products multiplied out");
  export_verb.flag("--folded", options->folded, "safetensors: rank vectors multiplied into the cores");
  export_verb.option("--draw", options->draw, "svg, png: curves, ranks (a map of every bond) or tensor-trains (their diagram)")
      .one_of({"curves", "ranks", "tensor-trains"})
      .shows_default();
  export_verb.option("--metric", options->metrics, "svg, png: metric to draw as a curve (default: the losses)").take_all();
  export_verb.option("--theme", options->theme, "svg, png: colours: light, dark or contrast")
      .one_of({"light", "dark", "contrast"})
      .shows_default();
  export_verb.option("--scale", options->scale, "png: scale, 1 to 4").within(1, 4).shows_default();
  export_verb.flag("--wide", options->wide, "csv: one column per metric");
  const CLI::App* given = &export_verb.app();
  export_verb.does([&context, options, given] {
    refuse_unused(*given, options->to);
    return export_run(context, *options);
  });
  Verb import_verb = program.verb("import", "import TensorBoard event files, csv, another database, a safetensors model or a model folder");
  import_verb.option("path", options->paths, "file or folder, or several; - for stdin: CSV, an event file, a database").required();
  import_verb.option("--name", options->name, "name of the new run");
  import_verb.option("--config", options->config, "preset or config file, for a model that contains none");
  import_verb.option("--set", options->sets, "path=value: changes a setting of that config").take_all();
  import_verb.does([&context, options] {
    if (options->paths.size() > 1) return import_files(context, *options);
    options->run = options->paths.front();
    return import_file(context, *options);
  });
}

}  // namespace comera::cli
