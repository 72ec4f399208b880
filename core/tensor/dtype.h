#pragma once
#include <cstddef>

namespace comera {

// bf16 is a way to store: no op computes in it.
enum class DType : unsigned char { f32, f64, i32, u8, bf16 };

constexpr size_t size_of(DType dtype) { return dtype == DType::f64 ? 8 : dtype == DType::u8 ? 1 : dtype == DType::bf16 ? 2 : 4; }
constexpr const char* name_of(DType dtype) {
  return dtype == DType::f32 ? "f32" : dtype == DType::f64 ? "f64" : dtype == DType::i32 ? "i32" : dtype == DType::u8 ? "u8" : "bf16";
}

template <class T>
inline constexpr DType dtype_of = DType::u8;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<int> = DType::i32;
template <>
inline constexpr DType dtype_of<unsigned short> = DType::bf16;

}  // namespace comera
