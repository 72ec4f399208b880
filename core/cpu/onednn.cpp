// Opens the library of products in bf16.
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/base/module.h"
#include "core/ops/device.h"
#include "core/ops/rounded_products.h"

namespace comera {
namespace {

struct Onednn {
  const RoundedProducts* products = nullptr;
  std::string reason, remedy;
};

Onednn opened_onednn() {
  Onednn found{.reason = "", .remedy = "install libdnnl-dev and build again, or use train.matmul=fp32"};
  const std::string path = module_path(kOnednnFile);
  if (path.empty()) {
    found.reason = std::string("not here: there is no ") + kOnednnFile + " next to the program; it is built where oneDNN (libdnnl-dev) is";
    return found;
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open
  const auto get = handle ? reinterpret_cast<const RoundedProducts* (*)()>(dlsym(handle, kOnednnSymbol)) : nullptr;
  if (!get) {
    const char* why = dlerror();
    found.reason = "built in, but it does not load: " + std::string(why ? why : "another library of this name");
  } else if (const RoundedProducts* products = get(); products->refusal) {
    found.reason = products->refusal;
    found.remedy = "use train.matmul=fp32";
  } else {
    found.products = products;
  }
  return found;
}

Onednn onednn_here() {
  const char* wanted = std::getenv("COMERA_ONEDNN");
  if (wanted && std::string_view(wanted) == "off") return {.reason = "left out: COMERA_ONEDNN=off", .remedy = "unset COMERA_ONEDNN"};
  static const Onednn kOpened = opened_onednn();
  return kOpened;
}

}  // namespace

OnednnStatus onednn_status() {
  const Onednn found = onednn_here();
  return found.products ? OnednnStatus{true, found.products->name, ""} : OnednnStatus{false, "", found.reason};
}

const RoundedProducts& open_rounded_products() {
  const Onednn found = onednn_here();
  if (!found.products)
    throw Error(ErrorCode::device, "products in bf16 are not available on this CPU", "oneDNN is " + found.reason, found.remedy);
  return *found.products;
}

}  // namespace comera
