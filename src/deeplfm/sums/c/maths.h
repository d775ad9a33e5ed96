/* Functions of one number that a compiler can evaluate for a whole vector at once, and the threads.

   Fits are those of `constants.py`, of which the build makes `constants.h`. Loops run over points, whose number is padded
   to a multiple of LANES with copies of the last point and gradients of zero. NaN stays NaN. */
#ifndef DEEPLFM_MATHS_H
#define DEEPLFM_MATHS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "constants.h" /* made by the build */

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
    float close = near * fit_rise(near), away = 1 - fade;
    return fabsf(u) < 0.5f ? close : away;
}

/* sin(pi f) and cos(pi f), |f| <= 1/2. */
INLINE float sine_of_half_turns(float f) { return f * fit_sine(f * f); }
INLINE float cosine_of_half_turns(float f) { return fit_cosine(f * f); }

/* The turns of a phase beyond whole ones, from a frequency in turns as a sum of two numbers. */
INLINE float turns(float x, float high, float low) {
    float whole = floorf(x * high + 0.5f);
    return fmaf(x, low, fmaf(x, high, -whole));
}

/* The moments of half a Gaussian, M_n(a) = int_0^inf v^n e^{-av - v^2/2} dv, from 1/(a + 4), a >= 0. */
INLINE float zeroth_moment(float inverse) { return inverse * fit_moment_0(1 - 8 * inverse); }
INLINE float first_moment(float inverse) {
    return inverse * inverse * fit_moment_1(1 - 8 * inverse);
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
