/* Functions of one number that a compiler can evaluate for a whole vector at once, and the threads.

   Fits are those of `fused/triton_maths.py`, float32. Loops run over points, whose number is padded
   to a multiple of LANES with copies of the last point and gradients of zero. NaN stays NaN. */
#ifndef DEEPLFM_MATHS_H
#define DEEPLFM_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define LANES 16
#define SIMD _Pragma("omp simd") /* the arrays of a loop are apart */
#define BLOCK 256 /* points that are worked on together: their numbers stay in the nearest cache */

INLINE int padded(int points) { return (points + LANES - 1) / LANES * LANES; }

/* Numbers of some points, with the last one again as padding. */
INLINE void load(const float *from, long stride, int count, float *to) {
    for (int i = 0; i < count; i++) to[i] = from[i * stride];
    for (int i = count; i < padded(count); i++) to[i] = to[count - 1];
}

/* The same for gradients, which are zero there. */
INLINE void load_or_zero(const float *from, long stride, int count, float *to) {
    for (int i = 0; i < count; i++) to[i] = from[i * stride];
    for (int i = count; i < padded(count); i++) to[i] = 0;
}

INLINE float power_of_two(int32_t n) {
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A compiler that knows this number makes a branch of the comparison, and no vectors. */
extern float lowest_exponent;

/* e^x of x <= 88; 1e-38 where it would be less. */
INLINE float exponential(float x) {
    x = x < lowest_exponent ? lowest_exponent : x;
    int32_t n = (int32_t)(x * 1.44269504f + copysignf(0.5f, x));
    float r = fmaf((float)n, -0.693359375f, x);
    r = fmaf((float)n, 2.12194440e-4f, r);
    float p = 1.0f / 5040;
    p = fmaf(p, r, 1.0f / 720);
    p = fmaf(p, r, 1.0f / 120);
    p = fmaf(p, r, 1.0f / 24);
    p = fmaf(p, r, 1.0f / 6);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    return p * power_of_two(n);
}

/* (1 - e^{-u}), to rounding near 0 too, from e^{-u}. */
INLINE float rise(float u, float fade) {
    float near = fabsf(u) < 0.5f ? u : 0.5f;
    float p = -1.0f / 40320;
    p = fmaf(p, near, 1.0f / 5040);
    p = fmaf(p, near, -1.0f / 720);
    p = fmaf(p, near, 1.0f / 120);
    p = fmaf(p, near, -1.0f / 24);
    p = fmaf(p, near, 1.0f / 6);
    p = fmaf(p, near, -0.5f);
    p = fmaf(p, near, 1.0f);
    float close = near * p, away = 1 - fade;
    return fabsf(u) < 0.5f ? close : away;
}

/* sin(pi f) and cos(pi f), |f| <= 1/2. */
INLINE float sine_of_half_turns(float f) {
    float u = f * f, p = 0.07756038639f;
    p = fmaf(p, u, -0.5982421261f);
    p = fmaf(p, u, 2.550069726f);
    p = fmaf(p, u, -5.167709685f);
    p = fmaf(p, u, 3.141592637f);
    return f * p;
}

INLINE float cosine_of_half_turns(float f) {
    float u = f * f, p = -0.02439671661f;
    p = fmaf(p, u, 0.234937559f);
    p = fmaf(p, u, -1.335212057f);
    p = fmaf(p, u, 4.058709164f);
    p = fmaf(p, u, -4.934802137f);
    return fmaf(p, u, 1.0f);
}

/* The turns of a phase beyond whole ones, from a frequency in turns as a sum of two numbers. */
INLINE float turns(float x, float high, float low) {
    float whole = floorf(x * high + 0.5f);
    return fmaf(x, low, fmaf(x, high, -whole));
}

/* The moments of half a Gaussian, M_n(a) = int_0^inf v^n e^{-av - v^2/2} dv, a >= 0. */
INLINE float zeroth_moment(float inverse) {
    float y = 1 - 8 * inverse, p = -0.0003873900637f;
    p = fmaf(p, y, 0.0003188790209f);
    p = fmaf(p, y, 0.003906739222f);
    p = fmaf(p, y, -0.00870392216f);
    p = fmaf(p, y, -0.01882270185f);
    p = fmaf(p, y, 0.1513833561f);
    p = fmaf(p, y, -0.467554597f);
    p = fmaf(p, y, 0.9704108256f);
    p = fmaf(p, y, -1.523770257f);
    p = fmaf(p, y, 1.893219034f);
    return inverse * p;
}

INLINE float first_moment(float inverse) {
    float y = 1 - 8 * inverse, p = 0.0006299545193f;
    p = fmaf(p, y, -0.0006219794449f);
    p = fmaf(p, y, -0.005348925353f);
    p = fmaf(p, y, 0.007858604446f);
    p = fmaf(p, y, 0.02984337665f);
    p = fmaf(p, y, -0.08950831233f);
    p = fmaf(p, y, -0.06102958833f);
    p = fmaf(p, y, 0.8514276436f);
    p = fmaf(p, y, -2.475733851f);
    p = fmaf(p, y, 4.313854027f);
    p = fmaf(p, y, -4.988360903f);
    p = fmaf(p, y, 3.416989946f);
    return inverse * inverse * p;
}

INLINE float dot(const float *a, const float *b, int count) {
    float total = 0;
    for (int i = 0; i < count; i++) total += a[i] * b[i];
    return total;
}

INLINE float sum(const float *a, int count) {
    float total = 0;
    for (int i = 0; i < count; i++) total += a[i];
    return total;
}

#endif
