// libjpeg reports errors by functions that must not return: by longjmp here. Whatever may be left so runs inside attempt(), holds nothing
// that has a destructor, and finds its memory made before.
#include <cstddef>
#include <cstdio>
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>
#include <cstring>

#include "core/data/picture.h"

namespace comera {
namespace {

constexpr int kMostScans = 500;  // of a progressive file: each takes the time of a whole picture

struct Errors {
  jpeg_error_mgr base = {};  // first: libjpeg hands back its address
  std::jmp_buf back = {};
  char problem[JMSG_LENGTH_MAX] = "";
};
static_assert(offsetof(Errors, base) == 0);

Errors& errors_of(j_common_ptr jpeg) { return *reinterpret_cast<Errors*>(jpeg->err); }

[[noreturn]] void on_error(j_common_ptr jpeg) {
  Errors& errors = errors_of(jpeg);
  jpeg->err->format_message(jpeg, errors.problem);
  std::longjmp(errors.back, 1);
}

// libjpeg makes up pixels for data that are missing or damaged, and warns.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      on_error(jpeg);
    default:
      break;
  }
}
void on_output(j_common_ptr) {}

void on_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  Errors& errors = errors_of(jpeg);
  std::snprintf(errors.problem, sizeof errors.problem, "it has more than %d scans", kMostScans);
  std::longjmp(errors.back, 1);
}

class Jpeg {
 public:
  Jpeg() {
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.emit_message = on_message;
    errors_.base.output_message = on_output;
    progress_.progress_monitor = on_progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&jpeg_); }
  Jpeg(const Jpeg&) = delete;

  jpeg_decompress_struct& operator*() { return jpeg_; }
  jpeg_decompress_struct* operator->() { return &jpeg_; }
  jpeg_progress_mgr& progress() { return progress_; }
  const char* problem() const { return errors_.problem; }

  // False: it ended with an error.
  template <class Body>
  bool attempt(const Body& body) {
    if (setjmp(errors_.back)) return false;
    body();
    return true;
  }

 private:
  jpeg_decompress_struct jpeg_ = {};
  Errors errors_;
  jpeg_progress_mgr progress_ = {};
};

// Of cyan, magenta, yellow and black; Adobe's files have them upside down.
std::vector<unsigned char> colours_of(const std::vector<unsigned char>& cmyk, bool inverted) {
  std::vector<unsigned char> rgb(cmyk.size() / 4 * 3);
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    const auto light = [&](size_t channel) { return inverted ? cmyk[4 * i + channel] : 255u - cmyk[4 * i + channel]; };
    for (size_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<unsigned char>((light(c) * light(3) + 127u) / 255u);
  }
  return rgb;
}

J_COLOR_SPACE wanted(J_COLOR_SPACE stored) {
  if (stored == JCS_GRAYSCALE) return JCS_GRAYSCALE;
  return stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : JCS_RGB;
}

}  // namespace

std::string decode_jpeg(std::string_view bytes, Picture& out) {
  Jpeg jpeg;
  if (!jpeg.attempt([&] {
        jpeg_create_decompress(&*jpeg);
        jpeg->progress = &jpeg.progress();
        jpeg_mem_src(&*jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&*jpeg, TRUE);
      }))
    return jpeg.problem();
  if (std::string wrong = size_problem(jpeg->image_height, jpeg->image_width); !wrong.empty()) return wrong;
  if (!jpeg.attempt([&] {
        jpeg->out_color_space = wanted(jpeg->jpeg_color_space);
        jpeg_start_decompress(&*jpeg);
      }))
    return jpeg.problem();
  const auto channels = static_cast<size_t>(jpeg->output_components), line = jpeg->output_width * channels;
  out = {jpeg->output_height, jpeg->output_width, static_cast<int64_t>(channels), std::vector<unsigned char>(jpeg->output_height * line)};
  unsigned char* const first = out.pixels.data();
  if (!jpeg.attempt([&] {
        while (jpeg->output_scanline < jpeg->output_height) {
          JSAMPROW at = first + jpeg->output_scanline * line;
          jpeg_read_scanlines(&*jpeg, &at, 1);
        }
        jpeg_finish_decompress(&*jpeg);
      }))
    return jpeg.problem();
  if (channels == 4) {
    out.pixels = colours_of(out.pixels, jpeg->saw_Adobe_marker);
    out.channels = 3;
  }
  return out.channels == 1 || out.channels == 3 ? "" : "its pixels have " + std::to_string(channels) + " values";
}

}  // namespace comera
