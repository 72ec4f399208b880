#include "core/train/matrix_moments.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/config/named_methods.h"
#include "core/models/huggingface.h"
#include "core/models/model.h"
#include "core/train/trainer.h"

namespace comera {
namespace {

// One matrix.
class Sums {
 public:
  explicit Sums(const Param& param) : param_(param), m_(param.shape[0]), n_(param.shape[1]) {
    const int64_t shorter = std::min(m_, n_), longer = std::max(m_, n_);
    moments_.shorter.resize(static_cast<size_t>(shorter * shorter));
    moments_.longer.resize(static_cast<size_t>(m_ == n_ ? longer * longer : longer));
  }

  void add(Ops& ops) {
    const Mat g(param_.grad, m_, n_);
    add_side(ops, moments_.shorter, g, m_ <= n_);
    if (m_ == n_) return add_side(ops, moments_.longer, g, false);
    const float* values = param_.grad.data<float>();
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t j = 0; j < n_; ++j) {
        const float value = values[i * n_ + j];
        moments_.longer[static_cast<size_t>(m_ > n_ ? i : j)] += value * value;
      }
  }
  GradientMoments take() { return std::move(moments_); }

 private:
  void add_side(Ops& ops, std::vector<float>& sums, const Mat& g, bool of_rows) {
    const int64_t side = of_rows ? m_ : n_;
    ops.gemm(Tensor(sums.data(), {side, side}, DType::f32), g, !of_rows, g, of_rows, 1, 1);
  }

  const Param& param_;
  const int64_t m_, n_;
  GradientMoments moments_;
};

// A dense run whose steps keep their gradients and leave the weights as they are.
RunConfig without_steps(RunConfig config, int64_t batches) {
  config.method = {};
  config.method.weights = "dense";
  set_method(config.method, "lomo");
  config.method.update = "after";
  config.method.table_gradients = "dense";
  config.train.precision = "f32";
  config.train.device = "cpu";
  config.train.clip_norm = 0;
  config.train.lr = 0;
  config.train.schedule = "constant";
  config.train.warmup = 0;
  config.train.patience = 0;
  config.train.steps = batches;
  config.train.eval_every = 0;
  return config;
}

}  // namespace

std::map<std::string, GradientMoments> matrix_moments(const std::string& folder, const RunConfig& config,
                                                      const std::set<std::string>& names, const std::shared_ptr<const Dataset>& data,
                                                      int64_t batches, const std::function<bool()>& stopped) {
  const std::unique_ptr<Device> device = open_device("cpu", static_cast<int>(config.train.threads));
  TrainObserver none;
  Trainer trainer(without_steps(config, batches), data, nullptr, *device, none);
  trainer.start();
  ParamSet& params = trainer.engine().params();
  read_folder(HuggingFaceFolder(folder), config.model, [&](const std::string& name, const std::vector<double>& values) {
    const Param* param = params.find(name);
    CHECK(param, "no place for " << name);
    from_host(*device, *param, values);
  });
  std::map<std::string, Sums> sums;
  for (const std::string& name : names) {
    const Param* param = params.find(name);
    CHECK(param && param->shape.rank() == 2, "no matrix " << name);
    sums.emplace(name, *param);
  }
  for (int64_t batch = 0; batch < batches; ++batch) {
    if (stopped && stopped()) throw Error(ErrorCode::other, "reading the weights of " + folder + " was stopped");
    trainer.step();
    for (auto& [name, sum] : sums) sum.add(device->ops());
  }
  std::map<std::string, GradientMoments> moments;
  for (auto& [name, sum] : sums) moments.emplace(name, sum.take());
  return moments;
}

}  // namespace comera
