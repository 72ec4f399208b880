// HD marks math that both compilers take: a plain inline function for C++, also a device function for nvcc.
#pragma once
#ifdef __CUDACC__
#define HD __host__ __device__ inline
#else
#define HD inline
#endif
