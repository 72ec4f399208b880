// Images: patches, pooling, norms over groups of channels.
#include "tests/ops/cases/cases.h"
#include "tests/ops/dry.h"

namespace comera::test {

namespace {

struct Images {
  int64_t images, channels;
  Window window;
};

std::string name_of_case(const char* op, const Images& c) {
  const Window& w = c.window;
  return op + Shape{c.images, c.channels, w.height, w.width, w.kernel_rows, w.stride_rows}.text();
}

// Windows that overlap, meet, leave gaps and reach into the padding.
std::vector<Images> some_images() {
  return {{1, 1, Window::square(2, 1, 1, 1, 0)},   {2, 3, Window::square(7, 8, 3, 1, 1)},
          {3, 33, Window::square(5, 4, 3, 2, 1)},  {2, 5, {7, 8, 5, 3, 1, 2, 2, 1}},
          {1, 31, Window::square(8, 8, 2, 2, 0)},  {2, 4, Window::square(7, 6, 2, 3, 0)},
          {1, 257, Window::square(2, 3, 2, 1, 1)}, {4, 6, Window::whole(7, 5)},
          {0, 3, Window::square(4, 4, 3, 1, 1)}};
}

void add_patches(std::vector<Case>& cases) {
  for (const Images& c : some_images())
    add_case(cases, name_of_case("patches_", c), [c](Runner& r, auto type) {
      using T = decltype(type);
      const Window& w = c.window;
      const Shape pixels{c.images * w.pixels(), c.channels}, patches{c.images * w.count(), w.area() * c.channels};
      r.ops().run(op::Unfold{r.out<T>(patches, 0), r.in(uniform<T>(pixels, 1)), w});
      r.ops().run(op::Fold{r.out<T>(pixels, 0), r.in(uniform<T>(patches, 2)), w});
    });
}

void add_pooling(std::vector<Case>& cases) {
  for (const Images& c : some_images())
    add_case(cases, name_of_case("pooling_", c), [c](Runner& r, auto type) {
      using T = decltype(type);
      const Window& w = c.window;
      const Shape pixels{c.images * w.pixels(), c.channels}, windows{c.images * w.count(), c.channels};
      Array<T> values = uniform<T>(pixels, 1, -3, -1);                    // below the padding's zeros
      for (int64_t i = 0; i < values.count(); i += 3) values[i] = T(-2);  // the first of equal ones counts
      if (values.count() > 9) values[9] = static_cast<T>(NAN);
      const Tensor x = r.in(values), dy = r.in(uniform<T>(windows, 2)), place = r.out(Array<unsigned char>(windows, 9), 0);
      r.ops().run(op::MaxPool{r.out<T>(windows, 0), place, x, w});
      r.ops().run(op::MaxPool{r.out<T>(windows, 0), {}, x, w});
      r.ops().run(op::MaxPoolBackward{r.out<T>(pixels, 0), dy, place, w});
      r.ops().run(op::AveragePool{r.out<T>(windows), x, w});
      r.ops().run(op::AveragePoolBackward{r.out<T>(pixels), dy, w});
    });
}

void add_group_norms(std::vector<Case>& cases) {
  struct Groups {
    int64_t examples, rows, channels, groups;
  };
  for (const Groups& c : {Groups{1, 2, 1, 1},
                          {1, 4321, 3, 3},  // batch norm: several pieces of the rows
                          {1, 65, 33, 33},
                          {7, 12, 6, 3},  // group norm
                          {3, 140, 32, 1},
                          {40, 9, 8, 8},
                          {130, 3, 4, 2},
                          {2, 33, 1026, 2}})
    add_case(cases, "group_norm_" + Shape{c.examples, c.rows, c.channels, c.groups}.text(), [c](Runner& r, auto type) {
      using T = decltype(type);
      const double near = tolerance<T>(1e-4, 1e-11);
      const Shape shape{c.examples * c.rows, c.channels}, statistics{c.examples, c.groups}, channels{c.channels};
      const Tensor x = r.in(uniform<T>(shape, 1, 2, 5)), dy = r.in(uniform<T>(shape, 2));
      const Tensor gamma = r.in(uniform<T>(channels, 3, 0.5, 1.5)), beta = r.in(uniform<T>(channels, 4));
      const Tensor mean = r.out<T>(statistics, near), variance = r.out<T>(statistics, near);
      r.ops().run(op::GroupStatistics{mean, variance, x});
      r.ops().run(op::GroupNormForward{r.out<T>(shape, near), x, mean, variance, gamma, beta, 1e-3});
      for (const bool constant : {false, true})
        r.ops().run(op::GroupNormBackward{r.out<T>(shape, near), r.out<T>(channels, near * 10), r.out<T>(channels, near * 10), dy, x, mean,
                                          variance, gamma, 1e-3, constant});
      const Tensor in_place = r.out(uniform<T>(shape, 2), near);
      r.ops().run(op::GroupNormBackward{in_place, r.out<T>(channels, near * 10), r.out<T>(channels, near * 10), in_place, x, mean, variance,
                                        gamma, 1e-3});
    });
}

}  // namespace

std::vector<Case> image_cases() {
  std::vector<Case> cases;
  add_patches(cases);
  add_pooling(cases);
  add_group_norms(cases);
  return cases;
}

std::vector<Refusal> image_refusals() {
  return {
      {"a window larger than the image",
       [](Ops& o) {
         o.run(op::Unfold{dry({1, 25}), dry({9, 1}), Window::square(3, 3, 5, 1, 0)});
       },
       "unfold: windows of 5 x 5"},
      {"a window in the padding",
       [](Ops& o) {
         o.run(op::AveragePool{dry({36, 1}), dry({16, 1}), Window::square(4, 4, 2, 1, 2)});
       },
       "padding 2 x 2"},
      {"half an image",
       [](Ops& o) {
         o.run(op::Fold{dry({8, 2}), dry({9, 18}), Window::square(3, 3, 3, 1, 1)});
       },
       "fold: dx is (8, 2) f32, expected rows of images"},
      {"patches",
       [](Ops& o) {
         o.run(op::Unfold{dry({9, 17}), dry({9, 2}), Window::square(3, 3, 3, 1, 1)});
       },
       "unfold: y is (9, 17)"},
      {"a window with more places than a byte can name",
       [](Ops& o) {
         o.run(op::MaxPool{dry({1, 2}), bytes({1, 2}), dry({289, 2}), Window::whole(17, 17)});
       },
       "max_pool: 289 places"},
      {"groups of channels",
       [](Ops& o) {
         o.run(op::GroupStatistics{dry({2, 3}), dry({2, 3}), dry({8, 4})});
       },
       "group_statistics: mean is (2, 3)"},
      {"examples of no rows",
       [](Ops& o) {
         o.run(op::GroupStatistics{dry({2, 2}), dry({2, 2}), dry({0, 4})});
       },
       "mean is (2, 2)"},
  };
}

}  // namespace comera::test
