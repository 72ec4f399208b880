// libpng reports errors by longjmp. Whatever may be left so runs inside attempt(), holds nothing that has a destructor, and finds its
// memory made before.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/data/picture.h"

namespace comera {
namespace {

struct Source {
  std::string_view rest;
  char problem[160] = "libpng has no memory";
};

void on_error(png_structp png, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->problem, sizeof source->problem, "%s", text);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void give(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->rest.size()) png_error(png, "it is cut off");
  std::memcpy(to, source->rest.data(), count);
  source->rest.remove_prefix(count);
}

class Png {
 public:
  explicit Png(std::string_view bytes) : source_{bytes} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, on_error, on_warning);
    if (png_) info_ = png_create_info_struct(png_);
    if (info_) png_set_read_fn(png_, &source_, give);
  }
  ~Png() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Png(const Png&) = delete;

  bool made() const { return info_ != nullptr; }
  const char* problem() const { return source_.problem; }
  png_structp png() { return png_; }
  png_infop info() { return info_; }

  // False: it ended with an error.
  template <class Body>
  bool attempt(const Body& body) {
    if (setjmp(png_jmpbuf(png_))) return false;
    body();
    return true;
  }

 private:
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// 8 bits a value, gray or red, green and blue.
void set_transforms(png_structp png, png_infop info) {
  const int type = png_get_color_type(png, info);
  if (png_get_bit_depth(png, info) == 16) png_set_scale_16(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

}  // namespace

std::string decode_png(std::string_view bytes, Picture& out) {
  Png file(bytes);
  if (!file.made()) return file.problem();
  const png_structp png = file.png();
  const png_infop info = file.info();
  if (!file.attempt([&] {
        png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // sizes are judged below
        png_read_info(png, info);
      }))
    return file.problem();
  const png_uint_32 height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  if (std::string wrong = size_problem(height, width); !wrong.empty()) return wrong;
  if (!file.attempt([&] { set_transforms(png, info); })) return file.problem();
  const size_t channels = png_get_channels(png, info), line = width * channels;
  if ((channels != 1 && channels != 3) || png_get_rowbytes(png, info) != line)
    return "its pixels have " + std::to_string(channels) + " values";
  out = {height, width, static_cast<int64_t>(channels), std::vector<unsigned char>(height * line)};
  std::vector<png_bytep> lines(height);
  for (size_t y = 0; y < height; ++y) lines[y] = out.pixels.data() + y * line;
  png_bytepp const first = lines.data();
  if (!file.attempt([&] {
        png_read_image(png, first);
        png_read_end(png, nullptr);
      }))
    return file.problem();
  return "";
}

}  // namespace comera
